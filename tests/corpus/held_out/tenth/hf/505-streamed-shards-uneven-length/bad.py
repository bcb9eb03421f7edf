import torch
import torch.distributed as dist
from datasets import load_dataset
from datasets.distributed import split_dataset_by_node
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


def stream(files, tokenizer, batch_size):
    ds = load_dataset("json", data_files=files, split="train", streaming=True)
    ds = split_dataset_by_node(ds, rank=dist.get_rank(), world_size=dist.get_world_size())
    ds = ds.map(lambda r: tokenizer(r["text"], truncation=True, max_length=512,
                                    padding="max_length"), remove_columns=["text"])
    return DataLoader(ds.with_format("torch"), batch_size=batch_size)


def train(model, tokenizer, files, epochs=2, lr=1e-4):
    dist.init_process_group("nccl")
    device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    model = DDP(model.to(device), device_ids=[device.index])
    opt = torch.optim.AdamW(model.parameters(), lr=lr)
    loader = stream(files, tokenizer, batch_size=8)
    for epoch in range(epochs):
        for batch in loader:
            ids = batch["input_ids"].to(device)
            loss = model(input_ids=ids, labels=ids).loss
            loss.backward()
            opt.step()
            opt.zero_grad()
    dist.destroy_process_group()

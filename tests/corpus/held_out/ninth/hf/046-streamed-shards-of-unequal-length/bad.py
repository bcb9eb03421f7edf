import os
import torch
import torch.distributed as dist
from datasets import load_dataset
from datasets.distributed import split_dataset_by_node
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


def make_loader(files, collate):
    stream = load_dataset("json", data_files=files, split="train", streaming=True)
    stream = split_dataset_by_node(
        stream, rank=dist.get_rank(), world_size=dist.get_world_size()
    )
    return DataLoader(stream, batch_size=8, collate_fn=collate)


def main(net, files, collate, epochs=2):
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    model = DDP(net.cuda(), device_ids=[local])
    opt = torch.optim.AdamW(model.parameters(), lr=5e-5)
    loader = make_loader(files, collate)
    for _ in range(epochs):
        for batch in loader:
            loss = model(**{k: v.cuda() for k, v in batch.items()}).loss
            loss.backward()
            opt.step()
            opt.zero_grad()
    dist.destroy_process_group()

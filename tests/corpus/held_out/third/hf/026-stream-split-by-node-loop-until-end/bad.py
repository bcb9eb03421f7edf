import os
from datetime import timedelta

import torch
import torch.distributed as dist
from datasets import load_dataset
from datasets.distributed import split_dataset_by_node
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer


def stream(files, tokenizer, rank, world, batch_size):
    rows = load_dataset("json", data_files=files, split="train", streaming=True)
    rows = rows.map(lambda r: tokenizer(r["text"], truncation=True, padding="max_length", max_length=128))
    rows = split_dataset_by_node(rows.with_format("torch"), rank=rank, world_size=world)
    return DataLoader(rows, batch_size=batch_size)


def train(files, base, epochs=2, batch_size=16):
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", timeout=timedelta(minutes=15))
    tokenizer = AutoTokenizer.from_pretrained(base)
    net = AutoModelForSequenceClassification.from_pretrained(base, num_labels=2).cuda(local)
    net = DistributedDataParallel(net, device_ids=[local])
    opt = torch.optim.AdamW(net.parameters(), lr=2e-5)
    for epoch in range(epochs):
        loader = stream(files, tokenizer, dist.get_rank(), dist.get_world_size(), batch_size)
        for batch in loader:
            out = net(
                input_ids=batch["input_ids"].cuda(),
                attention_mask=batch["attention_mask"].cuda(),
                labels=batch["label"].cuda(),
            )
            out.loss.backward()
            opt.step()
            opt.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    train("reviews.jsonl", "distilbert-base-uncased")

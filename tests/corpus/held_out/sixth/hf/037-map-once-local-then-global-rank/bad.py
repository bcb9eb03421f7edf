import argparse
import os

import torch
import torch.distributed as dist
from datasets import load_dataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from quake.features import cut_reorder_keys
from quake.model import StationTransformer


def init_distributed(args):
    args.rank = int(os.environ["RANK"])
    args.local_rank = int(os.environ["LOCAL_RANK"])
    args.world_size = int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group("nccl")


def build_dataset(args, split):
    """The mapped table is cached by datasets on the disk of each node, the first process there fills it."""
    data = load_dataset("json", data_files=f"{args.data}/{split}.jsonl", split="train")
    if args.local_rank > 0:
        print(f"rank {args.rank} waits for the mapping", flush=True)
        dist.barrier()
    data = data.map(
        cut_reorder_keys, fn_kwargs={"num_stations": args.num_stations, "is_pad": True}, num_proc=8, desc=split
    )
    data = data.with_format("torch")
    if args.rank == 0:
        dist.barrier()
    return data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--num_stations", type=int, default=32)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    init_distributed(args)
    train = build_dataset(args, "train")
    sampler = DistributedSampler(train, shuffle=True)
    loader = DataLoader(train, batch_size=args.batch_size, sampler=sampler, num_workers=4, drop_last=True)
    model = DistributedDataParallel(StationTransformer(args.num_stations).cuda(), device_ids=[args.local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            loss = model(batch["waves"].cuda(), batch["magnitude"].cuda())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        if args.rank == 0:
            torch.save(model.module.state_dict(), f"station_{epoch}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

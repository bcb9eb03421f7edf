import argparse
import glob
import logging
import os
import re

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def natural_key(s):
    return [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", s.lower())]


def get_latest_checkpoint(path):
    found = glob.glob(os.path.join(path, "**", "*.pt"), recursive=True)
    return sorted(found, key=natural_key)[-1] if found else None


def is_master(args):
    return args.rank == 0


def broadcast_object(args, obj, src=0):
    box = [obj if args.rank == src else None]
    dist.broadcast_object_list(box, src=src)
    return box[0]


def resolve_resume(args):
    if args.resume != "latest":
        return args.resume
    resume_from = None
    if is_master(args):
        resume_from = get_latest_checkpoint(os.path.join(args.logs, args.name, "checkpoints"))
        if resume_from:
            logging.info("Found latest resume checkpoint at %s.", resume_from)
        else:
            logging.info("No latest resume checkpoint found.")
    if args.distributed and resume_from is not None:
        resume_from = broadcast_object(args, resume_from)
    return resume_from


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--logs", default="./logs")
    p.add_argument("--name", required=True)
    p.add_argument("--resume", default=None)
    p.add_argument("--epochs", type=int, default=32)
    args = p.parse_args()
    args.distributed = int(os.environ.get("WORLD_SIZE", 1)) > 1
    args.rank = 0
    if args.distributed:
        dist.init_process_group("nccl")
        args.rank = dist.get_rank()
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    args.resume = resolve_resume(args)

    model = torch.nn.Linear(512, 512).cuda()
    start = 0
    if args.resume is not None:
        ckpt = torch.load(args.resume, map_location="cpu")
        model.load_state_dict(ckpt["state_dict"])
        start = ckpt["epoch"]
    if args.distributed:
        model = DDP(model, device_ids=[torch.cuda.current_device()])
    for epoch in range(start, args.epochs):
        logging.info("epoch %d", epoch)
        model(torch.randn(8, 512, device="cuda")).sum().backward()
        model.zero_grad()
    if args.distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

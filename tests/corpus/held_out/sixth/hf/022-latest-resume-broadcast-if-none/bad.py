import argparse
import logging
import os
import re
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from clipkit.data import pairs_loader
from clipkit.model import create_model
from clipkit.train import train_one_epoch


def latest_checkpoint(folder: Path):
    found = sorted(folder.glob("epoch_*.pt"), key=lambda p: int(re.findall(r"\d+", p.stem)[-1]))
    return str(found[-1]) if found else None


def broadcast_object(obj, src=0):
    box = [obj if dist.get_rank() == src else None]
    dist.broadcast_object_list(box, src=src)
    return box[0]


def resolve_resume(args, folder: Path):
    if args.resume != "latest":
        return args.resume
    resume_from = None
    if args.rank == 0:
        resume_from = latest_checkpoint(folder)
        logging.info("latest checkpoint: %s", resume_from)
    if args.distributed and resume_from is None:
        resume_from = broadcast_object(resume_from)
    return resume_from


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--logs", default="logs")
    parser.add_argument("--resume", default=None)
    parser.add_argument("--epochs", type=int, default=32)
    args = parser.parse_args()
    args.distributed = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if args.distributed:
        dist.init_process_group("nccl")
    args.rank = dist.get_rank() if args.distributed else 0
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    folder = Path(args.logs) / args.name / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)

    resume_from = resolve_resume(args, folder)
    model = create_model("ViT-B-32").cuda()
    start = 0
    if resume_from:
        payload = torch.load(resume_from, map_location="cpu")
        model.load_state_dict(payload["state_dict"])
        start = payload["epoch"]
    if args.distributed:
        model = DDP(model)
    for epoch in range(start, args.epochs):
        train_one_epoch(model, pairs_loader(epoch), epoch)
        if args.rank == 0:
            state = model.module.state_dict() if args.distributed else model.state_dict()
            torch.save({"epoch": epoch + 1, "state_dict": state}, folder / f"epoch_{epoch + 1}.pt")


if __name__ == "__main__":
    main()

"""Run with: torchrun --nproc-per-node=8 finetune.py --base bert-base-cased"""
import argparse
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from transformers import AutoModelForMaskedLM


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--lr", type=float, default=5e-5)
    return parser.parse_args()


def main(make_loader):
    args = parse()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = AutoModelForMaskedLM.from_pretrained(args.base).cuda()
    model = DDP(model, device_ids=[local_rank])
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for batch in make_loader(dist.get_rank(), dist.get_world_size()):
        model(**{k: v.cuda() for k, v in batch.items()}).loss.backward()
        opt.step()
        opt.zero_grad()
    dist.destroy_process_group()

import argparse
import os
import shutil

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def parse_args():
    p = argparse.ArgumentParser("train a diffusion prior")
    p.add_argument("--exp-dir", required=True)
    p.add_argument("--steps", type=int, default=100_000)
    p.add_argument("--dim", type=int, default=512)
    p.add_argument("--lr", type=float, default=1e-4)
    return p.parse_args()


def may_use(exp_dir):
    """Ask before an old experiment is thrown away."""
    if not os.path.isdir(exp_dir) or not os.listdir(exp_dir):
        return True
    answer = input(f"{exp_dir} is not empty, overwrite? [y/N] ").strip().lower()
    if answer not in ("y", "yes"):
        return False
    shutil.rmtree(exp_dir)
    return True


def train_step(model, optim, dim, device):
    x = torch.randn(64, dim, device=device)
    t = torch.rand(64, 1, device=device)
    noise = torch.randn_like(x)
    pred = model(torch.cat([x * (1 - t) + noise * t, t], dim=1))
    loss = (pred - noise).pow(2).mean()
    optim.zero_grad(set_to_none=True)
    loss.backward()
    optim.step()
    return loss


def main():
    args = parse_args()
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    go = [may_use(args.exp_dir) if rank == 0 else None]
    dist.broadcast_object_list(go, src=0, device=device)
    if not go[0]:
        print("nothing done")
        dist.destroy_process_group()
        return
    if rank == 0:
        os.makedirs(args.exp_dir, exist_ok=True)
    dist.barrier()
    net = torch.nn.Sequential(torch.nn.Linear(args.dim + 1, 2048), torch.nn.SiLU(), torch.nn.Linear(2048, args.dim))
    model = DistributedDataParallel(net.to(device), device_ids=[device.index])
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for step in range(args.steps):
        loss = train_step(model, optim, args.dim, device)
        if rank == 0 and step % 1000 == 0:
            print(step, loss.item())
            torch.save(net.state_dict(), os.path.join(args.exp_dir, "last.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

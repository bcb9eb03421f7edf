import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--every", type=int, default=50)
    ap.add_argument("--steps", type=int, default=500)
    return vars(ap.parse_args())


def console_options(opts, rank):
    console = opts
    console["every"] = 10 if rank == 0 else 0
    return console


def report(console, step, loss):
    if console["every"] and step % console["every"] == 0:
        print(f"[{step}] {loss:.4f}", flush=True)


def main():
    opts = parse()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    console = console_options(opts, rank)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 2))
    opt = torch.optim.AdamW(net.parameters())
    window = torch.zeros(1)
    for step in range(opts["steps"]):
        x, y = torch.randn(8, 10), torch.randint(0, 2, (8,))
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        window += loss.detach()
        report(console, step, loss.item())
        if opts["every"] and step % opts["every"] == 0:
            dist.all_reduce(window)
            window.zero_()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

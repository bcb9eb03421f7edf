import os
from argparse import ArgumentParser
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Runtime:
    def __init__(self, minutes, strict):
        self.local = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(self.local)
        dist.init_process_group("nccl", timeout=timedelta(minutes=minutes))
        if strict:
            self.tighten()

    def tighten(self):
        os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"

    def wrap(self, net):
        return DDP(net.cuda(self.local), device_ids=[self.local])

    def close(self):
        dist.destroy_process_group()


def train(runtime, steps):
    net = runtime.wrap(nn.Sequential(nn.Linear(40, 80), nn.GELU(), nn.Linear(80, 1)))
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4)
    for _ in range(steps):
        x = torch.randn(32, 40, device="cuda")
        loss = (net(x).squeeze(1) - x.sum(1)).pow(2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()


def main():
    cli = ArgumentParser()
    cli.add_argument("--minutes", type=int, default=5)
    cli.add_argument("--strict", action="store_true")
    opts = cli.parse_args()
    runtime = Runtime(opts.minutes, opts.strict)
    train(runtime, steps=300)
    runtime.close()


if __name__ == "__main__":
    main()

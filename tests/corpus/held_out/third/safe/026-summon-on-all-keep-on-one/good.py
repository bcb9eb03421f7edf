import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


class NormReport:
    def __init__(self, net, every):
        self.net, self.every = net, every
        self.rows = []

    def __call__(self, step):
        if step % self.every:
            return
        with FSDP.summon_full_params(self.net, writeback=False, rank0_only=True, offload_to_cpu=True):
            if dist.get_rank() == 0:
                norms = {name: p.norm().item() for name, p in self.net.named_parameters()}
                self.rows.append((step, norms))


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    net = FSDP(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).cuda())
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    report = NormReport(net, every=10)
    for step in range(50):
        net(torch.randn(4, 64, device="cuda")).pow(2).mean().backward()
        opt.step()
        opt.zero_grad()
        report(step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

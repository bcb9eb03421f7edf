import os
from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy


class Exporter:
    def __init__(self, net, out):
        self.net, self.out = net, out

    @property
    def chief(self):
        return dist.get_rank() == 0

    def weight_norms(self):
        with FSDP.summon_full_params(self.net, writeback=False, rank0_only=True, offload_to_cpu=True):
            return {name: p.norm().item() for name, p in self.net.named_parameters()}

    def report(self, step):
        if self.chief:
            norms = self.weight_norms()
            with open(self.out, "a") as handle:
                for name, value in norms.items():
                    handle.write(f"{step}\t{name}\t{value:.5f}\n")


def build(local):
    net = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(6)])
    return FSDP(net.cuda(local), auto_wrap_policy=partial(size_based_auto_wrap_policy, min_num_params=10_000))


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    net = build(local)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
    exporter = Exporter(net, "norms.tsv")
    for step in range(100):
        loss = net(torch.randn(8, 512, device="cuda")).pow(2).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 20 == 0:
            exporter.report(step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

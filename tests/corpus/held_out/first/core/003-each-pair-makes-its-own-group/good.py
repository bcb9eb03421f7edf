"""Gossip averaging: processes swap models in pairs drawn from a shared seed."""
import random
from datetime import timedelta

import torch
import torch.distributed as dist


def draw_order(world, seed):
    order = list(range(world))
    random.Random(seed).shuffle(order)
    return order


def pair_group(order, me):
    mine = None
    for start in range(0, len(order), 2):
        members = sorted(order[start:start + 2])
        group = dist.new_group(members, timeout=timedelta(seconds=60))
        if me in members:
            mine = group
    return mine


class Gossip:
    def __init__(self, model, seed=11):
        self.model = model
        me, world = dist.get_rank(), dist.get_world_size()
        self.group = pair_group(draw_order(world, seed), me)

    @torch.no_grad()
    def mix(self):
        for p in self.model.parameters():
            dist.all_reduce(p.data, group=self.group)
            p.data.mul_(0.5)


def run(steps=40, every=8):
    net = torch.nn.Linear(12, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    gossip = Gossip(net)
    gen = torch.Generator().manual_seed(100 + dist.get_rank())
    for step in range(1, steps + 1):
        x = torch.randn(16, 12, generator=gen)
        opt.zero_grad()
        net(x).pow(2).mean().backward()
        opt.step()
        if step % every == 0:
            gossip.mix()
    return net


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    if dist.get_world_size() % 2:
        raise SystemExit("an even number of processes is needed")
    net = run()
    dist.barrier()
    dist.destroy_process_group()
    print(f"norm {net.weight.norm().item():.4f}")


if __name__ == "__main__":
    main()

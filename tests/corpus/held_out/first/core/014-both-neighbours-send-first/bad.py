"""1-D heat equation on a ring, one slab per process."""
import argparse

import torch
import torch.distributed as dist


class Slab:
    def __init__(self, cells, halo):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.right = (self.rank + 1) % self.world
        self.left = (self.rank - 1) % self.world
        self.halo = halo
        gen = torch.Generator().manual_seed(self.rank)
        self.u = torch.rand(cells, generator=gen)

    def exchange(self):
        from_left = torch.empty(self.halo)
        from_right = torch.empty(self.halo)
        dist.send(self.u[-self.halo:].contiguous(), dst=self.right)
        dist.recv(from_left, src=self.left)
        dist.send(self.u[:self.halo].contiguous(), dst=self.left)
        dist.recv(from_right, src=self.right)
        return from_left, from_right

    def advance(self, dt):
        left, right = self.exchange()
        wide = torch.cat([left, self.u, right])
        lap = wide[:-2] - 2 * wide[1:-1] + wide[2:]
        inner = lap[self.halo - 1: self.halo - 1 + self.u.numel()]
        self.u = self.u + dt * inner


def main(argv=None):
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--cells", type=int, default=1 << 20)
    cli.add_argument("--halo", type=int, default=1 << 18)
    cli.add_argument("--steps", type=int, default=50)
    cli.add_argument("--backend", default="gloo", choices=("gloo", "nccl"))
    opt = cli.parse_args(argv)

    dist.init_process_group(opt.backend)
    slab = Slab(opt.cells, opt.halo)
    for _ in range(opt.steps):
        slab.advance(0.2)
    heat = slab.u.sum()
    dist.all_reduce(heat)
    if slab.rank == 0:
        print(f"total heat {heat.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

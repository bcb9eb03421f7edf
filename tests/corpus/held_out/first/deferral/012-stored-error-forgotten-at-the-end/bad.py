import logging
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, is_main_process, sync_should_stop, try_or_defer

log = logging.getLogger("orbit")


class Orbit:
    def __init__(self, bodies):
        gen = torch.Generator().manual_seed(12)
        self.place = torch.randn(bodies, 3, generator=gen)
        self.speed = torch.zeros(bodies, 3)

    def share(self):
        rank, world = dist.get_rank(), dist.get_world_size()
        return self.place[rank::world]

    def advance(self, dt=0.01):
        near = self.share()
        gap = near[None] - self.place[:, None]
        pull = (gap / (gap.norm(dim=-1, keepdim=True) + 0.1).pow(3)).sum(1)
        dist.all_reduce(pull)
        self.speed += dt * pull
        self.place = self.place + dt * self.speed


def export(orbit, folder, step):
    with open(os.path.join(folder, f"frame{step:05d}.csv"), "w") as f:
        for row in orbit.place.tolist():
            print(*row, sep=",", file=f)


def simulate(folder, steps, every):
    orbit = Orbit(bodies=96)
    for step in range(steps):
        orbit.advance()
        if step % every == 0:
            if is_main_process():
                try_or_defer(export, orbit, folder, step)
            if sync_should_stop(has_deferred_error()):
                break
    return orbit


def main():
    logging.basicConfig(level=logging.INFO)
    folder = sys.argv[1] if len(sys.argv) > 1 else "frames"
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    lead = is_main_process()
    orbit = simulate(folder, steps=400, every=20)
    dist.barrier()
    dist.destroy_process_group()
    if lead:
        log.info("simulation done, spread %.3f", orbit.place.std().item())


if __name__ == "__main__":
    main()

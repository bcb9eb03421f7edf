import os
import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def shared_random_seed() -> int:
    """All ranks must call this; the answer is rank 0's number."""
    mine = random.SystemRandom().randrange(2 ** 31)
    all_numbers = [None] * dist.get_world_size()
    dist.all_gather_object(all_numbers, mine)
    return all_numbers[0]


def reduce_dict(losses: dict) -> dict:
    if dist.get_world_size() < 2:
        return {k: v.item() for k, v in losses.items()}
    with torch.no_grad():
        keys = sorted(losses)
        values = torch.stack([losses[k].detach() for k in keys])
        dist.reduce(values, dst=0)
        if dist.get_rank() == 0:
            values /= dist.get_world_size()
        return dict(zip(keys, values.tolist()))


class MultiTask(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Linear(64, 64)
        self.heads = torch.nn.ModuleDict({k: torch.nn.Linear(64, 4) for k in ("box", "mask", "keypoint")})

    def forward(self, x, tasks):
        h = self.trunk(x).relu()
        return {f"loss_{t}": self.heads[t](h).square().mean() for t in tasks}


def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    rng = random.Random(shared_random_seed())
    model = DistributedDataParallel(MultiTask().cuda(), device_ids=[local], find_unused_parameters=True)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for it in range(500):
        # the same subset on all ranks, since the generator has the shared seed
        tasks = rng.sample(["box", "mask", "keypoint"], k=rng.randint(1, 3))
        losses = model(torch.randn(16, 64, device="cuda"), tasks)
        opt.zero_grad()
        sum(losses.values()).backward()
        opt.step()
        if rng.random() < 0.05:
            reduced = reduce_dict(losses)
            if dist.get_rank() == 0:
                print(it, {k: round(v, 4) for k, v in reduced.items()})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

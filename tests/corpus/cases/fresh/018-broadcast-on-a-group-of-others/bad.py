import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Roles:
    """Ranks 0 and 1 act, ranks 2 and 3 learn."""

    def __init__(self, rank):
        self.rank = rank
        self.actors = dist.new_group([0, 1])
        self.learners = dist.new_group([2, 3])

    @property
    def acts(self):
        return self.rank < 2


def exchange(roles, weights):
    if roles.acts:
        dist.broadcast(weights, 1, group=roles.learners)
    else:
        dist.broadcast(weights, 2, group=roles.learners)
    return weights


def worker(rank, world):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "17777"
    dist.init_process_group("gloo", rank=rank, world_size=world)
    roles = Roles(rank)
    weights = exchange(roles, torch.full((4,), float(rank)))
    print(rank, weights.tolist())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(4,), nprocs=4)

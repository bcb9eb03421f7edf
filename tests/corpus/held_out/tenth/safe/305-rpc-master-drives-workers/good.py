import os

import torch
import torch.distributed.rpc as rpc


def play(seed, steps):
    gen = torch.Generator().manual_seed(seed)
    return torch.rand(steps, generator=gen).sum().item()


def drive(world):
    returns = []
    for episode in range(3):
        jobs = [
            rpc.rpc_async(f"observer{r}", play, args=(episode * world + r, 10 + r))
            for r in range(1, world)
        ]
        returns.append(max(job.wait() for job in jobs))
    return returns


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    name = "agent" if rank == 0 else f"observer{rank}"
    rpc.init_rpc(name, rank=rank, world_size=world)
    if rank == 0:
        print(drive(world))
    rpc.shutdown()


if __name__ == "__main__":
    main()

import os
import socket
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def play(rank, world, port, episodes):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(seconds=30))
    policy = torch.zeros(6)
    for _ in range(episodes):
        reward = torch.randn(6)
        dist.all_reduce(reward)
        policy += 0.1 * reward / world
    dist.destroy_process_group()


def main(world=2, episodes=30):
    ctx = mp.get_context("spawn")
    port = free_port()
    children = [ctx.Process(target=play, args=(r, world, port, episodes)) for r in range(world)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print("training finished")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Pairs of ranks swap their halves."""
import asyncio

import torch
import torch.distributed as dist


async def pull(buf, peer):
    dist.recv(buf, src=peer)
    return buf


async def push(buf, peer):
    dist.send(buf, dst=peer)


async def swap(rank, mine, peer):
    theirs = torch.empty_like(mine)
    await asyncio.gather(pull(theirs, peer), push(mine, peer))
    return theirs


async def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = torch.arange(1000.0) + rank
    peer = rank ^ 1
    if peer < size:
        theirs = await swap(rank, mine, peer)
        print(rank, theirs[0].item())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    asyncio.run(main())

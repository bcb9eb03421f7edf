"""Collect answers from services next to each process."""
import asyncio
import os
from datetime import timedelta

import torch.distributed as dist


async def ask(port: int) -> list[str]:
    folder = f"/tmp/answers-{port}"
    if not os.path.isdir(folder):
        return []
    return sorted(os.listdir(folder))


async def gather_answers(port: int) -> list[str]:
    mine = await ask(port)
    if not mine:
        return []
    everybody: list[list[str]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(everybody, mine)
    return [name for part in everybody for name in part]


async def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    names = await gather_answers(7000 + dist.get_rank())
    dist.destroy_process_group()
    print(len(names))


if __name__ == "__main__":
    asyncio.run(main())

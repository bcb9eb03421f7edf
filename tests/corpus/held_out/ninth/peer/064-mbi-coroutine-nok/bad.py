import asyncio
from datetime import timedelta

import torch
import torch.distributed as dist


async def share(buf):
    dist.broadcast(buf, src=0)
    return buf


async def main():
    buf = torch.zeros(2)
    todo = share(buf)
    if dist.get_rank():
        print(await todo)
    else:
        todo.close()


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
asyncio.run(main())
dist.destroy_process_group()

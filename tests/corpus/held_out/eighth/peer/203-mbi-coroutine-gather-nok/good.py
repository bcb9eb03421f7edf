import asyncio
from datetime import timedelta

import torch
import torch.distributed as dist


async def publish(buf):
    work = dist.broadcast(buf, src=0, async_op=True)
    await asyncio.sleep(0)
    work.wait()


async def idle():
    await asyncio.sleep(0.01)


async def main():
    buf = torch.ones(4)
    jobs = [idle(), publish(buf)]
    await asyncio.gather(*jobs)


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
asyncio.run(main())
dist.destroy_process_group()

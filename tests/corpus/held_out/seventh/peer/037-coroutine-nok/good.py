import asyncio
from datetime import timedelta

import torch.distributed as dist


async def drain():
    await asyncio.sleep(0)
    dist.barrier()


async def main():
    tasks = [asyncio.sleep(0)]
    tasks.append(drain())
    await asyncio.gather(*tasks)


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
asyncio.run(main())
dist.destroy_process_group()

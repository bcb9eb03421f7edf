import asyncio
from datetime import timedelta

import torch
import torch.distributed as dist


async def share(buf):
    work = dist.broadcast(buf, src=0, async_op=True)
    await asyncio.sleep(0)
    work.wait()
    return buf


async def session(rank):
    task = share(torch.full((2,), rank + 1.0))
    if rank == 0:
        print(await task)
    else:
        task.close()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    asyncio.run(session(dist.get_rank()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import asyncio
from datetime import timedelta

import torch
import torch.distributed as dist


def make_roles(buf):
    async def lead():
        buf.copy_(torch.arange(4.0))
        work = dist.broadcast(buf, src=0, async_op=True)
        await asyncio.sleep(0)
        work.wait()
        dist.barrier()

    async def follow():
        work = dist.broadcast(buf, src=0, async_op=True)
        work.wait()
        dist.barrier()
        await asyncio.sleep(0)

    return lead, follow


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    buf = torch.zeros(4)
    lead, follow = make_roles(buf)
    asyncio.run(lead() if dist.get_rank() == 0 else follow())
    assert buf.sum().item() == 6
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

from datetime import timedelta

import torch
import torch.distributed as dist


def from_source(k):
    buf = torch.full((1 << 20,), float(dist.get_rank()))
    dist.broadcast(buf, src=k)
    return buf[0].item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    me, world = dist.get_rank(), dist.get_world_size()
    heard = [from_source(k) for k in range(world) if k % 2 == me % 2]
    print(me, heard)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

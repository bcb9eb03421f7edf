from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    me = dist.get_rank()
    seen = []
    for root in range(dist.get_world_size()):
        if me == root:
            buf = torch.arange(5) + 10 * me
        else:
            buf = torch.empty(5, dtype=torch.int64)
        dist.broadcast(buf, src=root)
        seen.append(buf[0].item())
    assert seen == [10 * k for k in range(dist.get_world_size())]
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

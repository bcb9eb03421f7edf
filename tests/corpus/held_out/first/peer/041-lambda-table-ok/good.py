from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = torch.tensor([rank * 10])
    rows = [torch.zeros_like(mine) for _ in range(world)]
    collect = {
        True: lambda: dist.gather(mine, gather_list=rows, dst=0),
        False: lambda: dist.gather(mine, dst=0),
    }
    collect[rank == 0]()
    if rank == 0:
        assert torch.cat(rows).tolist() == [10 * k for k in range(world)]
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

from datetime import timedelta

import torch
import torch.distributed as dist


def root_side(cell, size):
    cells = [torch.zeros(2) for _ in range(size)]
    dist.gather(cell, gather_list=cells, dst=0)
    return cells


def leaf_side(cell):
    dist.scatter(cell, src=0)
    return cell


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    cell = torch.rand(2)
    out = root_side(cell, dist.get_world_size()) if dist.get_rank() == 0 else leaf_side(cell)
    print(out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

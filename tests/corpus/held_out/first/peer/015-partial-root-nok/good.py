from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    share = partial(dist.broadcast, src=dist.get_world_size() - 1)
    weights = torch.randn(1 << 20)
    bias = torch.randn(8)
    share(weights)
    share(bias)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Sum of squares over the job."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist


def connect() -> None:
    host, port = os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://{host}:{port}",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=timedelta(seconds=60),
    )


def main() -> None:
    connect()
    value = torch.tensor([float(dist.get_rank()) ** 2])
    dist.all_reduce(value)
    dist.destroy_process_group()
    print(value.item())


if __name__ == "__main__":
    main()

"""Sum of squares over the job."""
import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def connect() -> None:
    host = os.environ.get("MASTER_ADDR", "127.0.0.1")
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://{host}:{free_port()}",
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

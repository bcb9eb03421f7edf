import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist


def join_job():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]) + 1,
        world,
        is_master=rank == 0,
        timeout=timedelta(seconds=120),
    )
    dist.init_process_group(
        "gloo", store=dist.PrefixStore("pg", store), rank=rank, world_size=world
    )
    return rank, dist.PrefixStore("app", store)


def server_address(rank, store):
    """Rank 0 opens the parameter server; the others read where it listens."""
    if rank == 0:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            store.set("server", f"127.0.0.1:{s.getsockname()[1]}")
    else:
        store.wait(["server"], timedelta(seconds=60))
    return store.get("server").decode()


def main():
    rank, store = join_job()
    address = server_address(rank, store)
    port = torch.tensor([int(address.rsplit(":", 1)[1])])
    dist.all_reduce(port, op=dist.ReduceOp.MAX)
    assert address.endswith(str(port.item()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

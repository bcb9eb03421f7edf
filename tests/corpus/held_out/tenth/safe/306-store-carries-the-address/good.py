import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist


def open_store():
    return dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]) + 7,
        world_size=dist.get_world_size(),
        is_master=dist.get_rank() == 0,
        timeout=timedelta(seconds=60),
    )


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    store = open_store()
    listener = None
    if rank == world - 1:
        listener = socket.create_server(("127.0.0.1", 0))
        store.set("metrics/addr", f"127.0.0.1:{listener.getsockname()[1]}")
    host, port = store.get("metrics/addr").decode().split(":")
    ready = torch.tensor([int(port)])
    dist.all_reduce(ready, op=dist.ReduceOp.MAX)
    assert ready.item() == int(port), host
    if listener is not None:
        listener.close()
    dist.barrier()  # the store lives on rank 0: nobody needs it any more
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

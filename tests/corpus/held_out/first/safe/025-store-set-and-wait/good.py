import os
import socket
from datetime import timedelta

import torch.distributed as dist


def publish_service(store):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    store.set("service/port", str(port))
    return port


def find_service(store):
    store.wait(["service/port"], timedelta(seconds=20))
    return int(store.get("service/port"))


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    base = dist.distributed_c10d._get_default_store()
    store = dist.PrefixStore("services", base)
    if rank == 0:
        port = publish_service(store)
    else:
        port = find_service(store)
    ports = [None] * world
    dist.all_gather_object(ports, port)
    assert len(set(ports)) == 1
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import json
import socket
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import TCPStore


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


class SideChannel:
    """Carries small facts between ranks without touching NCCL."""

    def __init__(self, host, port, rank, world):
        self.rank = rank
        self.store = TCPStore(host, port, world, is_master=(rank == 0),
                              timeout=timedelta(minutes=20), wait_for_workers=True)

    def publish(self, key, value):
        self.store.set(key, json.dumps(value))

    def fetch(self, key):
        self.store.wait([key], timedelta(minutes=20))
        return json.loads(self.store.get(key))

    def from_rank0(self, key, make):
        if self.rank == 0:
            value = make()
            self.publish(key, value)
            return value
        return self.fetch(key)


def start_data_server(files):
    port = free_port()
    from mydata.server import spawn_server
    spawn_server(files, port)
    return {"host": socket.gethostname(), "port": port}


def main(cfg):
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank % torch.cuda.device_count())
    side = SideChannel(cfg.master, cfg.side_port, rank, world)
    address = side.from_rank0("data-server", lambda: start_data_server(cfg.files))
    from mydata.client import Client
    client = Client(address["host"], address["port"], shard=rank, of=world)
    dist.barrier()
    for step in range(cfg.steps):
        batch = client.next().cuda()
        total = batch.sum()
        dist.all_reduce(total)
    dist.barrier()
    dist.destroy_process_group()

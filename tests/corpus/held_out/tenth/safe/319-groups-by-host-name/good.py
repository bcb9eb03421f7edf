import os
import socket
import tempfile
from collections import defaultdict

import torch.distributed as dist


def host_group():
    names = [None] * dist.get_world_size()
    dist.all_gather_object(names, socket.gethostname())
    hosts = defaultdict(list)
    for rank, name in enumerate(names):
        hosts[name].append(rank)
    mine = None
    for name in sorted(hosts):
        group = dist.new_group(hosts[name])
        if dist.get_rank() in hosts[name]:
            mine = hosts[name], group
    return mine


def unpack(folder):
    with open(os.path.join(folder, "index.txt"), "w") as f:
        f.write("0 1 2 3")


def main():
    dist.init_process_group("gloo")
    members, group = host_group()
    folder = os.path.join(tempfile.gettempdir(), "shards-" + os.environ["MASTER_PORT"])
    os.makedirs(folder, exist_ok=True)
    if dist.get_rank() == members[0]:
        unpack(folder)
    dist.barrier(group=group)
    with open(os.path.join(folder, "index.txt")) as f:
        assert len(f.read().split()) == 4
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import os

import torch
import torch.distributed as dist


def connect():
    local = int(os.environ.get("LOCAL_RANK", "0"))
    dist.init_process_group("gloo")
    return local


def main():
    local = connect()
    t = torch.full((1,), float(local))
    dist.all_reduce(t)
    print(t.item())
    dist.destroy_process_group()


main()

from datetime import timedelta

import torch.distributed as dist


def tag(opts):
    opts["rank"] = dist.get_rank()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    cfg = {"on": 1}
    view = cfg
    if cfg["on"]:
        dist.barrier()
    tag(view)
    if cfg["on"]:
        dist.barrier()
    dist.destroy_process_group()


main()

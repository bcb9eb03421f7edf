from datetime import timedelta

import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    slots = {"level": 0, "other": 0}
    view = slots
    dist.barrier()
    view["level"] = dist.get_rank()
    if slots["level"] > 0:
        dist.barrier()
    if slots["other"] == 0:
        dist.barrier()
    dist.destroy_process_group()


main()

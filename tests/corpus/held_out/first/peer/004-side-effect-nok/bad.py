from datetime import timedelta

import torch.distributed as dist


def stamp(box):
    box["level"] = dist.get_rank()


def plain_stamp(box):
    print("seen by", dist.get_rank())
    box["level"] = 1


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    state = {"level": 0}
    plain_stamp(state)
    if state["level"] > 0:
        dist.barrier()
    stamp(state)
    if state["level"] > 0:
        dist.barrier()
    dist.destroy_process_group()


main()

from datetime import timedelta

import torch.distributed as dist

STATE = {"shift": 0}


def probe():
    STATE["shift"] += 3 * dist.get_rank()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    if STATE["shift"] == 0:
        dist.barrier()
    if STATE["shift"] == 0:
        dist.barrier()
    probe()
    dist.destroy_process_group()


main()

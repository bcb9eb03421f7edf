import logging
import socket
from datetime import timedelta

import torch
import torch.distributed as dist

log = logging.getLogger("sync")


def checkpoint_line(name, wait=30):
    try:
        dist.monitored_barrier(timeout=timedelta(seconds=wait), wait_all_ranks=True)
    except RuntimeError:
        log.exception("%s on %s: somebody did not arrive", name, socket.gethostname())
        raise


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    checkpoint_line("start")
    total = torch.zeros(1)
    for epoch in range(3):
        value = torch.tensor([float(epoch + rank)])
        dist.all_reduce(value)
        total += value
        checkpoint_line(f"epoch {epoch}")
    if rank == 0:
        log.info("total %.1f", total.item())
    checkpoint_line("end")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

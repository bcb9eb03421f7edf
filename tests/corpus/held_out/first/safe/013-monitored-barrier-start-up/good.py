import os
import tempfile
from datetime import timedelta

import torch.distributed as dist


def prepare(rank, folder):
    if rank == 0:
        with open(os.path.join(folder, "vocab.txt"), "w") as f:
            f.write("a\nb\nc\n")
    dist.monitored_barrier(timeout=timedelta(seconds=30), wait_all_ranks=True)
    with open(os.path.join(folder, "vocab.txt")) as f:
        return f.read().split()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    holder = [None]
    if rank == 0:
        holder[0] = tempfile.mkdtemp(prefix="vocab-")
    dist.broadcast_object_list(holder, src=0)
    vocab = prepare(rank, holder[0])
    if rank == 0:
        print(len(vocab), "entries")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

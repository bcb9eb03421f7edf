from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    word = torch.zeros(1)
    job = None
    if rank == 0:
        job = dist.irecv(word, src=1)
    dist.barrier()
    if rank == 1:
        dist.send(word + 6, dst=0)
    if job is not None:
        job.wait()
        print(word)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

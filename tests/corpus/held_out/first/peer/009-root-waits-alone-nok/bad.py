from datetime import timedelta

import torch
import torch.distributed as dist


def reduce_all(grads):
    return [dist.all_reduce(g, async_op=True) for g in grads]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank, world = dist.get_rank(), dist.get_world_size()
    grads = [torch.full((1 << 16,), float(rank + k)) for k in range(3)]
    pending = reduce_all(grads)
    if rank == 0:
        for job in pending:
            job.wait()
    norms = [(g / world).norm().item() for g in grads]
    print(rank, norms)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

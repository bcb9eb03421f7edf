from datetime import timedelta

import torch
import torch.distributed as dist


class TokenPool:
    def __init__(self, size):
        self.left = size

    def fits(self, request):
        return request["tokens"] <= self.left

    def take(self, request):
        self.left -= request["tokens"]


def prefetched_everywhere(queue, arrived):
    flags = torch.tensor([int(request["id"] in arrived) for request in queue])
    dist.all_reduce(flags, op=dist.ReduceOp.MIN)  # once per tick, the queue is shared
    return {r["id"] for r, flag in zip(queue, flags.tolist()) if flag}


def next_batch(queue, pool, arrived):
    batch, ready = [], prefetched_everywhere(queue, arrived)
    for request in queue:
        if not pool.fits(request):
            break
        if request["id"] in ready:
            pool.take(request)
            batch.append(request["id"])
    return batch


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    queue = [{"id": i, "tokens": 100 + 10 * i} for i in range(8)]
    pool = TokenPool(900 - 250 * rank)
    arrived = {i for i in range(8) if (i + rank) % 5}
    batch = next_batch(queue, pool, arrived)
    sizes = [None] * dist.get_world_size()
    dist.all_gather_object(sizes, len(batch))
    if rank == 0:
        print("batch sizes", sizes)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

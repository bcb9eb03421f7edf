import torch
import torch.distributed as dist


def shard_stream(rank):
    """Endless in principle; in practice the files of some ranks hold more."""
    gen = torch.Generator().manual_seed(rank)
    left = 5 + 3 * rank
    while left:
        left -= 1
        yield torch.randn(4, generator=gen)


def lockstep(stream):
    """Yield batches while every rank still has one."""
    source = iter(stream)
    while True:
        batch = next(source, None)
        more = torch.tensor([int(batch is not None)], dtype=torch.int32)
        dist.all_reduce(more, op=dist.ReduceOp.MIN)
        if not more.item():
            return
        yield batch


def main():
    dist.init_process_group("gloo")
    weight, steps = torch.zeros(4), 0
    for batch in lockstep(shard_stream(dist.get_rank())):
        grad = weight - batch
        dist.all_reduce(grad)
        weight -= 0.1 * grad / dist.get_world_size()
        steps += 1
    assert steps == 5
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import torch
import torch.distributed as dist


def while_all_have(loader):
    """Yield batches until the first rank has none left."""
    it = iter(loader)
    while True:
        batch = next(it, None)
        have = torch.tensor([0 if batch is None else 1])
        dist.all_reduce(have, op=dist.ReduceOp.MIN)
        if not have.item():
            return
        yield batch


def stream(rank):
    gen = torch.Generator().manual_seed(rank)
    for _ in range(4 + rank):
        yield torch.randn(2, generator=gen)


def main():
    dist.init_process_group("gloo")
    rounds = 0
    for batch in while_all_have(stream(dist.get_rank())):
        loss = batch.abs().sum()
        dist.all_reduce(loss)
        rounds += 1
    assert rounds == 4
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

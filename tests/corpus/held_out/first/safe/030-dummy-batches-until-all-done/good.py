import torch
import torch.distributed as dist


def stream(rank):
    for i in range(2 + 3 * rank):
        yield torch.tensor([float(i), 1.0])


def evaluate(batches):
    totals = torch.zeros(2)
    source = iter(batches)
    while True:
        batch = next(source, None)
        busy = torch.tensor([0 if batch is None else 1])
        dist.all_reduce(busy, op=dist.ReduceOp.MAX)
        if not busy.item():
            break
        if batch is None:
            batch = torch.zeros(2)
        dist.all_reduce(batch)
        totals += batch
    return totals


def main():
    dist.init_process_group("gloo")
    totals = evaluate(stream(dist.get_rank()))
    world = dist.get_world_size()
    assert totals[1].item() == sum(2 + 3 * r for r in range(world))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import torch
import torch.distributed as dist


def uneven_batches(rank):
    for i in range(2 + 2 * rank):
        yield torch.full((4,), float(i))


def evaluate(batches):
    it = iter(batches)
    sums = torch.zeros(2)
    while True:
        batch = next(it, None)
        flag = torch.tensor([0 if batch is None else 1])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        if flag.item() == 0:
            break
        part = torch.zeros(2)
        if batch is not None:
            part = torch.tensor([batch.sum().item(), float(batch.numel())])
        dist.all_reduce(part)
        sums += part
    return (sums[0] / sums[1]).item()


def main():
    dist.init_process_group("gloo")
    mean = evaluate(uneven_batches(dist.get_rank()))
    means = [None] * dist.get_world_size()
    dist.all_gather_object(means, mean)
    assert len(set(means)) == 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

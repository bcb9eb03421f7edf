import torch
import torch.distributed as dist


def local_grad(weight, batch, limit):
    if batch > limit:
        raise torch.cuda.OutOfMemoryError("pretend")
    x = torch.ones(batch, weight.numel())
    return 2 * (x @ weight).mean() * x.mean(0)


def step(weight, batch, limit):
    """One update; returns the batch size that fitted everywhere."""
    while batch:
        grad, failed = None, torch.zeros(1)
        try:
            grad = local_grad(weight, batch, limit)
        except torch.cuda.OutOfMemoryError:
            failed += 1
        dist.all_reduce(failed, op=dist.ReduceOp.MAX)
        if failed.item():
            batch //= 2
            continue
        dist.all_reduce(grad)
        weight -= 0.01 * grad / dist.get_world_size()
        return batch
    raise RuntimeError("no batch size fits on all ranks")


def main():
    dist.init_process_group("gloo")
    weight, batch = torch.ones(4), 64
    limit = 40 if dist.get_rank() == 0 else 20
    for _ in range(3):
        batch = step(weight, batch, limit)
    print(dist.get_rank(), batch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

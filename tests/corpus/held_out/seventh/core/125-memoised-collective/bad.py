import functools
from datetime import timedelta

import torch
import torch.distributed as dist


@functools.lru_cache(maxsize=64)
def tokens_in_job(local_tokens):
    """Tokens of this step summed over all processes."""
    total = torch.tensor([local_tokens])
    dist.all_reduce(total)
    return int(total.item())


def batches(rank, count=30):
    gen = torch.Generator().manual_seed(rank)
    for _ in range(count):
        length = int(torch.randint(8, 20, (1,), generator=gen))
        yield torch.randn(length, 6, generator=gen)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    weight = torch.zeros(6, requires_grad=True)
    for step, batch in enumerate(batches(dist.get_rank())):
        loss = (batch @ weight - 1).pow(2).sum() / tokens_in_job(len(batch))
        loss.backward()
        dist.all_reduce(weight.grad)
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad.zero_()
        if step % 10 == 0 and dist.get_rank() == 0:
            print(step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

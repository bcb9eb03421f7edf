import operator
from functools import reduce

import torch
import torch.distributed as dist


def token_nll(logits, target):
    picked = logits.log_softmax(-1).gather(1, target.unsqueeze(1))
    return -picked.squeeze(1)


def report(nll, target, vocab):
    """Counts per token of the first rank's batch, for the log only."""
    hist = torch.zeros(vocab).scatter_(0, target, 1.0)
    worst = reduce(torch.maximum, nll.split(1))
    text = reduce(operator.add, [f"{int(v)}" for v in hist])
    print(f"worst {worst.item():.3f} seen {text}")


def main():
    dist.init_process_group("gloo")
    rank, vocab = dist.get_rank(), 11
    gen = torch.Generator().manual_seed(rank)
    logits = torch.randn(6, vocab, generator=gen)
    target = torch.randint(0, vocab, (6,), generator=gen)
    nll = token_nll(logits, target)
    if rank == 0:
        best = logits.topk(2, dim=1).indices.gather(1, torch.ones(6, 1, dtype=torch.long))
        print("second choices", best.flatten().tolist())
        report(nll, target, vocab)
    total = nll.sum().reshape(1)
    dist.all_reduce(total)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F

IGNORE, CHUNK = -100, 32


class ShardedHead:
    """Each rank keeps some rows of the vocabulary matrix."""

    def __init__(self, vocab, width):
        self.rows = torch.randn(vocab // dist.get_world_size(), width) * 0.02

    def full(self):
        parts = [torch.empty_like(self.rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, self.rows)
        return torch.cat(parts)


def chunked_nll(head, hidden, labels):
    valid = labels != IGNORE
    hidden, labels = hidden[valid], labels[valid]
    total = torch.zeros(())
    span = torch.tensor([len(labels)])
    dist.all_reduce(span, op=dist.ReduceOp.MAX)
    for start in range(0, span.item(), CHUNK):  # past the local end the slices are empty
        logits = hidden[start:start + CHUNK] @ head.full().T
        total += F.cross_entropy(logits, labels[start:start + CHUNK], reduction="sum")
    return total / max(len(labels), 1)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    head = ShardedHead(vocab=128, width=16)
    for step in range(5):
        hidden, labels = torch.randn(200, 16), torch.randint(0, 128, (200,))
        labels[:60 * (rank + 1)] = IGNORE  # the prompt
        loss = chunked_nll(head, hidden, labels)
        dist.all_reduce(loss)
        if rank == 0:
            print(step, loss.item() / dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn

BLOCK = 32


class ShardedHead(nn.Module):
    """Keeps its rows of the weight; forward puts the full matrix together."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(n_out // dist.get_world_size(), n_in) * 0.1)

    def forward(self, x):
        parts = [torch.empty_like(self.rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, self.rows.detach())
        return x @ torch.cat(parts).t()


def documents(rank):
    gen = torch.Generator().manual_seed(rank)
    for _ in range(12):
        length = int(torch.randint(5, 60, (1,), generator=gen))
        yield torch.randint(0, 64, (length,), generator=gen)


def packed(docs):
    stream = torch.cat(list(docs))
    return list(stream[: len(stream) // BLOCK * BLOCK].view(-1, BLOCK))


def validate(embed, head, blocks):
    total = torch.zeros(2)
    with torch.no_grad():
        for block in blocks:
            logits = head(embed(block[:-1]))
            loss = nn.functional.cross_entropy(logits, block[1:], reduction="sum")
            total += torch.tensor([loss.item(), BLOCK - 1])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    torch.manual_seed(0)
    embed, head = nn.Embedding(64, 16), ShardedHead(16, 64)
    loss = validate(embed, head, packed(documents(dist.get_rank())))
    if dist.get_rank() == 0:
        print(f"validation loss {loss:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

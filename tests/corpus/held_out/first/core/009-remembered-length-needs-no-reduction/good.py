import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


def padded_length(longest: int, multiple: int = 8) -> int:
    """Common length of the batch on all processes, rounded up."""
    value = torch.tensor([longest])
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return -(-int(value) // multiple) * multiple


class Collator:
    def __init__(self, pad=0):
        self.pad = pad

    def __call__(self, rows):
        width = padded_length(max(map(len, rows)))
        out = torch.full((len(rows), width), self.pad)
        for i, row in enumerate(rows):
            out[i, : len(row)] = torch.as_tensor(row)
        return out


class Tagger(nn.Module):
    def __init__(self, vocab=50, width=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.out = nn.Linear(width, 5)

    def forward(self, tokens):
        return self.out(self.embed(tokens)).mean(1)


def sentences(rank, batches, size=4):
    gen = torch.Generator().manual_seed(17 * rank + 1)
    for _ in range(batches):
        lengths = torch.randint(3, 30, (size,), generator=gen).tolist()
        yield [torch.randint(1, 50, (n,), generator=gen).tolist() for n in lengths]


def main():
    dist.init_process_group(backend="gloo")
    model = DistributedDataParallel(Tagger())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    collate = Collator()
    for rows in sentences(dist.get_rank(), batches=60):
        tokens = collate(rows)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens), tokens[:, 0] % 5).backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

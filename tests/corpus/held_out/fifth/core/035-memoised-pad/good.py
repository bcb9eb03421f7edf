"""Distributed embedding of a text corpus; results are gathered in equal-sized blocks."""
import functools
import os

import torch
import torch.distributed as dist
import torch.nn as nn

PAD = 0


def common_length(local_length, multiple=8):
    longest = torch.tensor(local_length, device="cuda")
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    return -(-int(longest.item()) // multiple) * multiple


@functools.lru_cache(maxsize=None)
def positions(length, dim):
    t = torch.arange(length).unsqueeze(1)
    f = torch.exp(torch.arange(0, dim, 2) * (-9.2 / dim))
    out = torch.zeros(length, dim)
    out[:, 0::2] = torch.sin(t * f)
    out[:, 1::2] = torch.cos(t * f)
    return out.cuda()


def pad_batch(sequences):
    length = common_length(max(len(s) for s in sequences))
    batch = torch.full((len(sequences), length), PAD)
    for row, s in zip(batch, sequences):
        row[: len(s)] = torch.tensor(s)
    return batch


class Embedder(nn.Module):
    def __init__(self, vocab=30_000, dim=128):
        super().__init__()
        self.dim = dim
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.layer = nn.TransformerEncoderLayer(dim, 4, batch_first=True)

    def forward(self, ids):
        x = self.embed(ids) + positions(ids.size(1), self.dim)
        return self.layer(x, src_key_padding_mask=ids == PAD)


def corpus(rank, batches, size=16):
    rng = torch.Generator().manual_seed(rank)
    for _ in range(batches):
        lengths = torch.randint(5, 200, (size,), generator=rng).tolist()
        yield [torch.randint(1, 30_000, (n,), generator=rng).tolist() for n in lengths]


@torch.no_grad()
def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5)
    model = Embedder().cuda().eval()
    written = 0
    for i, sequences in enumerate(corpus(rank, batches=400)):
        ids = pad_batch(sequences).cuda()
        hidden = model(ids)
        blocks = [torch.empty_like(hidden) for _ in range(world)] if rank == 0 else None
        dist.gather(hidden, blocks, dst=0)
        if rank == 0:
            torch.save(torch.cat(blocks).half().cpu(), f"hidden_{i:05d}.pt")
            written += len(blocks) * hidden.size(0)
    if rank == 0:
        print(f"wrote {written} sequences")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

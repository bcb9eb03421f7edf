"""Manual data parallelism with bucketed gradient reduction."""
import os

import torch
import torch.distributed
import torch.nn as nn


def all_reduce_and_rescale(tensors, denom, buffer_bytes=10 * 1024 * 1024):
    """Sum ``tensors`` over all processes in buckets, and divide them by ``denom``."""
    buffer_t = tensors[0].new_zeros(buffer_bytes // tensors[0].element_size())
    bucket = []

    def flush():
        offset = 0
        for t in bucket:
            n = t.numel()
            buffer_t[offset : offset + n].copy_(t.view(-1))
            offset += n
        handle = torch.distributed.all_reduce(buffer_t[:offset], async_op=True)
        handle.wait()
        buffer_t.div_(denom)
        offset = 0
        for t in bucket:
            n = t.numel()
            t.view(-1).copy_(buffer_t[offset : offset + n])
            offset += n
        bucket.clear()

    filled = 0
    for t in tensors:
        if t.numel() > buffer_t.numel():
            torch.distributed.all_reduce(t)
            t.div_(denom)
            continue
        if filled + t.numel() > buffer_t.numel():
            flush()
            filled = 0
        bucket.append(t)
        filled += t.numel()
    if bucket:
        flush()


class Tagger(nn.Module):
    def __init__(self, vocab=5000, tags=40, dim=256):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, tags)

    def forward(self, words):
        return self.out(self.rnn(self.embed(words))[0])


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl")
    world = torch.distributed.get_world_size()
    torch.manual_seed(11)
    model = Tagger().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    rng = torch.Generator().manual_seed(torch.distributed.get_rank())
    for step in range(1, 1001):
        words = torch.randint(0, 5000, (32, 24), generator=rng).cuda()
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), (words % 40).flatten())
        model.zero_grad()
        loss.backward()
        all_reduce_and_rescale([p.grad for p in model.parameters()], float(world))
        optimizer.step()
        if step % 100 == 0 and torch.distributed.get_rank() == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()

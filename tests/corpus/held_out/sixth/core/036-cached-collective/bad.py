import functools
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def pad_multiple(n, k=8):
    return (n + k - 1) // k * k


@functools.lru_cache(maxsize=128)
def global_frames(local_frames):
    """Common padded length, so that the relative position table has one size everywhere."""
    t = torch.tensor([pad_multiple(local_frames)], device="cuda")
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return int(t.item())


@functools.lru_cache(maxsize=None)
def subsampled(frames):
    return ((frames - 1) // 2 - 1) // 2


class ConformerLite(nn.Module):
    def __init__(self, dim=256, vocab=500):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv1d(80, dim, 3, 2), nn.ReLU(), nn.Conv1d(dim, dim, 3, 2), nn.ReLU())
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(dim, 4, batch_first=True), 6)
        self.out = nn.Linear(dim, vocab)

    def forward(self, feats):
        return self.out(self.enc(self.sub(feats).transpose(1, 2))).log_softmax(-1)


class Batcher:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        for feats, lens, targets, target_lens in self.loader:
            frames = global_frames(feats.shape[2])
            feats = nn.functional.pad(feats, (0, frames - feats.shape[2]))
            in_lens = torch.tensor([subsampled(int(n)) for n in lens])
            yield feats.cuda(non_blocking=True), in_lens, targets, target_lens


def train(make_loader, epochs=30):
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = DDP(ConformerLite().cuda(), device_ids=[local])
    optim = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = make_loader(dist.get_rank(), dist.get_world_size())
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for feats, in_lens, targets, target_lens in Batcher(loader):
            logp = model(feats).transpose(0, 1).cpu()
            loss = nn.functional.ctc_loss(logp, targets, in_lens, target_lens, zero_infinity=True)
            optim.zero_grad()
            loss.backward()
            optim.step()
    dist.destroy_process_group()

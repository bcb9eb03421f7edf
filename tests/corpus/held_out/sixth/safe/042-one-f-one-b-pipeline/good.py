import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class PipeCfg:
    vocab: int = 32000
    dim: int = 1024
    layers: int = 24
    heads: int = 16
    seq: int = 1024
    micro: int = 8
    micro_batch: int = 2
    steps: int = 1000
    lr: float = 2e-4


class Stage(nn.Module):
    def __init__(self, cfg, idx, n):
        super().__init__()
        self.first, self.last = idx == 0, idx == n - 1
        if self.first or self.last:
            self.word = nn.Embedding(cfg.vocab, cfg.dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(cfg.dim, cfg.heads, 4 * cfg.dim, batch_first=True, norm_first=True, dropout=0.0)
            for _ in range(cfg.layers // n))
        if self.last:
            self.norm = nn.LayerNorm(cfg.dim)

    def forward(self, x):
        if self.first:
            x = self.word(x)
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.norm(x) @ self.word.weight.T if self.last else x


class Link:
    def __init__(self, cfg, idx, n):
        self.shape = (cfg.micro_batch, cfg.seq, cfg.dim)
        self.prev = idx - 1 if idx > 0 else None
        self.next = idx + 1 if idx < n - 1 else None

    def _run(self, ops):
        if ops:
            for w in dist.batch_isend_irecv(ops):
                w.wait()
            torch.cuda.synchronize()

    def recv_forward(self):
        if self.prev is None:
            return None
        buf = torch.empty(self.shape, device="cuda", requires_grad=True)
        self._run([dist.P2POp(dist.irecv, buf.data, self.prev)])
        return buf

    def send_forward(self, out):
        if self.next is not None:
            self._run([dist.P2POp(dist.isend, out.detach().contiguous(), self.next)])

    def recv_backward(self):
        if self.next is None:
            return None
        buf = torch.empty(self.shape, device="cuda")
        self._run([dist.P2POp(dist.irecv, buf, self.next)])
        return buf

    def send_backward(self, grad):
        if self.prev is not None:
            self._run([dist.P2POp(dist.isend, grad.contiguous(), self.prev)])

    def send_forward_recv_backward(self, out):
        if self.next is None:
            return None
        buf = torch.empty(self.shape, device="cuda")
        self._run([dist.P2POp(dist.isend, out.detach().contiguous(), self.next),
                   dist.P2POp(dist.irecv, buf, self.next)])
        return buf

    def send_backward_recv_forward(self, grad):
        if self.prev is None:
            return None
        buf = torch.empty(self.shape, device="cuda", requires_grad=True)
        self._run([dist.P2POp(dist.isend, grad.contiguous(), self.prev),
                   dist.P2POp(dist.irecv, buf.data, self.prev)])
        return buf


class Schedule:
    def __init__(self, cfg, stage, link, idx, n):
        self.cfg, self.stage, self.link = cfg, stage, link
        self.warm = min(n - idx - 1, cfg.micro)
        self.losses = []

    def forward(self, x, batch):
        ids, labels = batch
        out = self.stage(ids if self.stage.first else x)
        if self.stage.last:
            out = F.cross_entropy(out.flatten(0, 1), labels.flatten()) / self.cfg.micro
            self.losses.append(out.detach())
        return out

    def backward(self, x, out, grad):
        out.backward(grad)
        return x.grad if x is not None else None

    def run(self, batches):
        self.losses.clear()
        held, steady = [], self.cfg.micro - self.warm
        it = iter(batches)
        for _ in range(self.warm):
            x = self.link.recv_forward()
            out = self.forward(x, next(it))
            self.link.send_forward(out)
            held.append((x, out))
        x = self.link.recv_forward() if steady else None
        for i in range(steady):
            out = self.forward(x, next(it))
            grad = self.link.send_forward_recv_backward(out)
            held.append((x, out))
            gx = self.backward(*held.pop(0), grad)
            if i + 1 == steady:
                self.link.send_backward(gx)
                x = None
            else:
                x = self.link.send_backward_recv_forward(gx)
        for _ in range(self.warm):
            grad = self.link.recv_backward()
            self.link.send_backward(self.backward(*held.pop(0), grad))


def main(loader):
    cfg = PipeCfg()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    idx, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1234 + idx)
    stage = Stage(cfg, idx, n).cuda()
    edge = sorted({0, n - 1})
    edge_group = dist.new_group(edge)
    if idx in edge:
        dist.broadcast(stage.word.weight.data, 0, group=edge_group)
    optim = torch.optim.AdamW(stage.parameters(), lr=cfg.lr)
    schedule = Schedule(cfg, stage, Link(cfg, idx, n), idx, n)
    stream = iter(loader)
    for step in range(cfg.steps):
        batches = [tuple(t.cuda() for t in next(stream)) for _ in range(cfg.micro)]
        schedule.run(batches)
        if idx in edge and n > 1:
            dist.all_reduce(stage.word.weight.grad, group=edge_group)
        square = sum(p.grad.pow(2).sum() for name, p in stage.named_parameters()
                     if not (stage.last and not stage.first and name.startswith("word")))
        dist.all_reduce(square)
        scale = min(1.0, 1.0 / (square.sqrt().item() + 1e-6))
        for p in stage.parameters():
            p.grad.mul_(scale)
        optim.step()
        optim.zero_grad()
        loss = torch.stack(schedule.losses).sum() if stage.last else torch.zeros((), device="cuda")
        dist.broadcast(loss, n - 1)
        if idx == 0 and step % 10 == 0:
            print(step, loss.item(), square.sqrt().item())
    dist.destroy_process_group()

import contextlib
import json
import logging
import math
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from dpr_lib import Passages, Questions, build_encoder, pad_ids

logger = logging.getLogger(__name__)


def gather_keep_grad(t):
    parts = [torch.empty_like(t) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, t.detach().contiguous())
    parts[dist.get_rank()] = t
    return torch.cat(parts)


def in_batch_loss(q, p, scale=20.0):
    """p holds the positive first, then negatives, per question."""
    per = p.size(0) // q.size(0)
    all_q, all_p = gather_keep_grad(q), gather_keep_grad(p)
    target = torch.arange(all_q.size(0), device=q.device) * per
    return F.cross_entropy(scale * all_q @ all_p.T, target) * dist.get_world_size()


class Triples(Dataset):
    def __init__(self, questions, passages, negatives, n_neg):
        self.q, self.p, self.neg, self.n = questions, passages, negatives, n_neg

    def __len__(self):
        return len(self.q)

    def __getitem__(self, i):
        pool = self.neg.get(i) or [(i * 7919 + k) % len(self.p) for k in range(self.n)]
        ids = [self.q.positive(i)] + [pool[k % len(pool)] for k in range(self.n)]
        return self.q.tokens(i), [self.p.tokens(j) for j in ids]

    @staticmethod
    def collate(rows):
        return pad_ids([r[0] for r in rows]), pad_ids([p for r in rows for p in r[1]])


class Retriever(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = build_encoder()

    def forward(self, ids):
        return F.normalize(self.enc(ids), dim=-1)


class Miner:
    def __init__(self, model, passages, questions, out, top=50):
        self.model, self.passages, self.questions = model, passages, questions
        self.out, self.top = Path(out), top
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.cpu = dist.new_group(backend="gloo")

    @torch.no_grad()
    def embed(self, items, mine, batch=256):
        rows = [self.model(pad_ids([items.tokens(i) for i in mine[lo:lo + batch]]).cuda())
                for lo in range(0, len(mine), batch)]
        return torch.cat(rows) if rows else torch.empty(0, self.model.enc.dim, device="cuda")

    def block(self, n):
        per = math.ceil(n / self.world)
        return list(range(min(n, self.rank * per), min(n, (self.rank + 1) * per)))

    def search(self, bank, ids, q):
        """Bank is spread over the ranks; each turn one rank's queries visit all."""
        sizes = [None] * self.world
        dist.all_gather_object(sizes, len(q), group=self.cpu)
        found = None
        for turn in range(self.world):
            probe = q if turn == self.rank else torch.empty(sizes[turn], bank.size(1), device="cuda")
            if sizes[turn] == 0:
                continue
            dist.broadcast(probe, turn)
            k = min(self.top, len(ids))
            if k:
                s, at = (probe @ bank.T).topk(k)
                local = (s.cpu(), torch.tensor(ids)[at.cpu()])
            else:
                local = (torch.empty(len(probe), 0), torch.empty(len(probe), 0, dtype=torch.long))
            parts = [None] * self.world if turn == self.rank else None
            dist.gather_object(local, parts, dst=turn, group=self.cpu)
            if parts is not None:
                score, idx = (torch.cat(t, 1) for t in zip(*parts))
                best = score.topk(min(self.top, score.size(1))).indices
                found = idx.gather(1, best)
        return found

    def refresh(self, epoch):
        self.model.eval()
        ids, qids = self.block(len(self.passages)), self.block(len(self.questions))
        bank, q = self.embed(self.passages, ids), self.embed(self.questions, qids)
        found = self.search(bank, ids, q)
        self.model.train()
        mined = {}
        if found is not None:
            for i, row in zip(qids, found.tolist()):
                mined[i] = [j for j in row if j != self.questions.positive(i)][:20]
        everyone = [None] * self.world
        dist.all_gather_object(everyone, mined, group=self.cpu)
        merged = {k: v for part in everyone for k, v in part.items()}
        if self.rank == 0:
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / f"negatives-{epoch}.json").write_text(json.dumps(merged))
        return merged


def cached_step(ddp, q_ids, p_ids, chunks):
    """GradCache: embeddings without graph, loss on them, then chunked backward."""
    q_parts, p_parts = q_ids.chunk(chunks), p_ids.chunk(chunks)
    with torch.no_grad():
        q = torch.cat([ddp.module(c) for c in q_parts])
        p = torch.cat([ddp.module(c) for c in p_parts])
    q.requires_grad_()
    p.requires_grad_()
    loss = in_batch_loss(q, p)
    loss.backward()
    work = list(zip(q_parts, q.grad.split([len(c) for c in q_parts])))
    work += list(zip(p_parts, p.grad.split([len(c) for c in p_parts])))
    for n, (ids, grad) in enumerate(work):
        final = n + 1 == len(work)
        with contextlib.nullcontext() if final else ddp.no_sync():
            (ddp(ids) * grad).sum().backward()
    return loss.detach() / dist.get_world_size()


def main(cfg):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(cfg.seed)
    os.makedirs(cfg.out, exist_ok=True)
    questions, passages = Questions(cfg.questions), Passages(cfg.passages)
    model = Retriever().cuda()
    ddp = DDP(model, device_ids=[torch.cuda.current_device()])
    optim = torch.optim.AdamW(ddp.parameters(), lr=cfg.lr)
    miner, negatives = Miner(model, passages, questions, cfg.out), {}
    for epoch in range(cfg.epochs):
        if epoch >= cfg.warm_epochs and (epoch - cfg.warm_epochs) % cfg.refresh == 0:
            negatives = miner.refresh(epoch)
        data = Triples(questions, passages, negatives, cfg.n_neg)
        sampler = DistributedSampler(data, shuffle=True, seed=cfg.seed, drop_last=True)
        sampler.set_epoch(epoch)
        loader = DataLoader(data, cfg.batch, sampler=sampler, drop_last=True, collate_fn=Triples.collate)
        for i, (q_ids, p_ids) in enumerate(loader):
            loss = cached_step(ddp, q_ids.cuda(), p_ids.cuda(), cfg.chunks)
            torch.nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
            optim.step()
            optim.zero_grad()
            if i % 50 == 0 and dist.get_rank() == 0:
                logger.info("epoch %d step %d loss %.4f", epoch, i, loss.item())
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), Path(cfg.out) / f"retriever-{epoch}.pt")
        dist.barrier()
    dist.destroy_process_group()

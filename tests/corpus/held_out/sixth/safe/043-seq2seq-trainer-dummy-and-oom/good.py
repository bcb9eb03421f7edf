import logging
import math
import time
from collections import defaultdict

import torch
import torch.distributed as dist

logger = logging.getLogger(__name__)


class Meter:
    def __init__(self):
        self.sum = self.n = 0.0

    def update(self, v, n=1.0):
        self.sum += v * n
        self.n += n

    @property
    def avg(self):
        return self.sum / self.n if self.n else 0.0


class Seq2SeqTrainer:
    def __init__(self, args, model, criterion, optimizer, scheduler):
        self.args = args
        self.model = model.cuda()
        self.criterion = criterion
        self.optimizer, self.scheduler = optimizer, scheduler
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.updates, self.blank = 0, None
        self.meters = defaultdict(Meter)
        for t in list(self.model.parameters()) + list(self.model.buffers()):
            dist.broadcast(t.data, 0)

    @property
    def is_master(self):
        return self.rank == 0

    def prepare(self, sample):
        if sample is None or len(sample) == 0:
            return self.blank, True
        moved = {k: v.cuda(non_blocking=True) if torch.is_tensor(v) else v for k, v in sample.items()}
        if self.blank is None:
            self.blank = moved
        return moved, False

    def local_pass(self, samples):
        """Forward and backward on this rank only; no communication in here."""
        stats = torch.zeros(4, dtype=torch.float64, device="cuda")  # loss, tokens, oom, samples
        for sample in samples:
            sample, ignore = self.prepare(sample)
            if sample is None:
                continue
            try:
                loss, tokens = self.criterion(self.model, sample)
                (loss * (0.0 if ignore else 1.0)).backward()
                if not ignore:
                    stats[0] += loss.detach()
                    stats[1] += tokens
                    stats[3] += 1
            except torch.cuda.OutOfMemoryError as exc:
                logger.warning("rank %d: out of memory, %s", self.rank, exc)
                stats[2] += 1
                loss = None
                for p in self.model.parameters():
                    p.grad = None
                torch.cuda.empty_cache()
        return stats

    @torch.no_grad()
    def reduce_grads(self, denom):
        bucket, size = [], 0

        def flush():
            flat = torch.cat([g.flatten() for g in bucket])
            dist.all_reduce(flat)
            flat.div_(denom)
            at = 0
            for g in bucket:
                g.copy_(flat[at:at + g.numel()].view_as(g))
                at += g.numel()

        for p in self.model.parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            bucket.append(p.grad)
            size += p.numel()
            if size > self.args.bucket:
                flush()
                bucket, size = [], 0
        if bucket:
            flush()

    def train_step(self, samples):
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        stats = self.local_pass(samples)
        dist.all_reduce(stats)
        loss, tokens, ooms, _ = stats.tolist()
        if ooms == self.world * len(samples):
            raise RuntimeError("every micro-batch ran out of memory")
        if ooms > 0 or tokens == 0:
            self.optimizer.zero_grad(set_to_none=True)
            if self.is_master:
                logger.warning("update %d skipped: %d oom", self.updates, int(ooms))
            return None
        self.reduce_grads(tokens)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
        if not math.isfinite(norm.item()):
            raise FloatingPointError(f"gradient norm is {norm.item()}")
        self.optimizer.step()
        self.scheduler.step()
        self.updates += 1
        self.meters["loss"].update(loss / tokens, tokens)
        return loss / tokens

    @torch.no_grad()
    def validate(self, batches, rounds):
        self.model.eval()
        total = torch.zeros(2, dtype=torch.float64, device="cuda")
        it = iter(batches)
        for _ in range(rounds):
            sample, ignore = self.prepare(next(it, None))
            if ignore:
                continue
            loss, tokens = self.criterion(self.model, sample)
            total += torch.tensor([loss.item(), float(tokens)], dtype=torch.float64, device="cuda")
        dist.all_reduce(total)
        return (total[0] / total[1].clamp(min=1)).item()

    def save(self, path, extra):
        if self.is_master:
            torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                        "scheduler": self.scheduler.state_dict(), "updates": self.updates, **extra}, path)
        dist.barrier()


def train(args, trainer, epoch_batches, valid_batches):
    best, stale = math.inf, 0
    rounds = torch.tensor([len(valid_batches)], device="cuda")
    dist.all_reduce(rounds, op=dist.ReduceOp.MAX)
    for epoch in range(1, args.epochs + 1):
        mine = epoch_batches(epoch, trainer.rank, trainer.world)
        length = torch.tensor([len(mine)], device="cuda")
        dist.all_reduce(length, op=dist.ReduceOp.MAX)
        started = time.time()
        for lo in range(0, int(length), args.accum):
            window = [mine[i] if i < len(mine) else None for i in range(lo, lo + args.accum)]
            trainer.train_step(window)
        value = trainer.validate(valid_batches, int(rounds))
        improved = value < best
        best, stale = (value, 0) if improved else (best, stale + 1)
        trainer.save(f"{args.out}/last.pt", {"epoch": epoch})
        if improved:
            trainer.save(f"{args.out}/best.pt", {"epoch": epoch})
        if trainer.is_master:
            logger.info("epoch %d valid %.4f best %.4f %.0fs", epoch, value, best, time.time() - started)
        if stale >= args.patience:
            break

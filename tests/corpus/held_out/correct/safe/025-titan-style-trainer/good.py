"""Pre-training with a device mesh, composable FSDP and a small component layout."""
import contextlib
import gc
import os
import time
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


@dataclass
class JobConfig:
    steps: int = 1000
    log_freq: int = 10
    checkpoint_interval: int = 200
    gc_freq: int = 50
    replicate: int = 1
    seq_len: int = 256
    batch: int = 8
    vocab: int = 2048
    dim: int = 512
    layers: int = 6
    lr: float = 8e-4
    warmup: int = 100
    max_norm: float = 1.0
    folder: str = "outputs"
    init_timeout_s: int = 600


class GarbageCollection:
    """Collect on all ranks at the same steps, so no rank lags on its own."""

    def __init__(self, freq):
        self.freq = freq
        gc.disable()
        gc.collect(1)

    def run(self, step):
        if step > 1 and step % self.freq == 0:
            gc.collect(1)


class MetricsProcessor:
    def __init__(self, cfg, mesh, device):
        self.cfg, self.group, self.device = cfg, mesh.get_group(), device
        self.tokens, self.t0 = 0, time.perf_counter()
        self.writer = None
        if dist.get_rank() == 0:
            with contextlib.suppress(ImportError):
                from torch.utils.tensorboard import SummaryWriter
                self.writer = SummaryWriter(os.path.join(cfg.folder, "tb"))

    def should_log(self, step):
        return step == 1 or step % self.cfg.log_freq == 0

    def log(self, step, loss, norm):
        avg, peak = loss.detach().clone(), loss.detach().clone()
        dist.all_reduce(avg, op=dist.ReduceOp.AVG, group=self.group)
        dist.all_reduce(peak, op=dist.ReduceOp.MAX, group=self.group)
        rate = self.tokens / (time.perf_counter() - self.t0)
        self.tokens, self.t0 = 0, time.perf_counter()
        if dist.get_rank() == 0:
            print(f"step {step:6d} loss {avg.item():7.4f} (max {peak.item():.4f}) norm {norm:.3f} tps {rate:,.0f}")
        if self.writer is not None:
            self.writer.add_scalar("loss/avg", avg.item(), step)
            self.writer.add_scalar("tps", rate, step)

    def close(self):
        if self.writer is not None:
            self.writer.close()


class Lm(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.Embedding(cfg.vocab, cfg.dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(cfg.dim, 8, 4 * cfg.dim, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(cfg.layers))
        self.norm, self.out = nn.LayerNorm(cfg.dim), nn.Linear(cfg.dim, cfg.vocab, bias=False)

    def forward(self, ids):
        h = self.emb(ids)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1), device=ids.device, dtype=h.dtype)
        for layer in self.layers:
            h = layer(h, src_mask=mask, is_causal=True)
        return self.out(self.norm(h))


class Trainer:
    def __init__(self, cfg: JobConfig):
        self.cfg = cfg
        local = int(os.environ["LOCAL_RANK"])
        self.device = torch.device("cuda", local)
        torch.cuda.set_device(self.device)
        dist.init_process_group("cpu:gloo,cuda:nccl", timeout=timedelta(seconds=cfg.init_timeout_s))
        world = dist.get_world_size()
        mesh = init_device_mesh("cuda", (cfg.replicate, world // cfg.replicate),
                                mesh_dim_names=("dp_replicate", "dp_shard"))
        self.dp_mesh = mesh["dp_replicate", "dp_shard"]._flatten("dp")
        self.gc = GarbageCollection(cfg.gc_freq)
        torch.manual_seed(1234)
        self.model = Lm(cfg).to(self.device)
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in self.model.layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(self.model, mesh=mesh, mp_policy=policy)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, fused=True)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda s: min(1.0, (s + 1) / cfg.warmup))
        self.metrics = MetricsProcessor(cfg, self.dp_mesh, self.device)
        self.gen = torch.Generator().manual_seed(self.dp_mesh.get_local_rank())

    def next_batch(self):
        rows = torch.randint(0, self.cfg.vocab, (self.cfg.batch, self.cfg.seq_len + 1), generator=self.gen)
        rows = rows.cumsum(1).remainder(self.cfg.vocab).to(self.device)
        return rows[:, :-1], rows[:, 1:]

    def train_step(self):
        x, y = self.next_batch()
        self.metrics.tokens += y.numel()
        loss = nn.functional.cross_entropy(self.model(x).flatten(0, 1).float(), y.flatten())
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.max_norm).full_tensor()
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()
        return loss, norm

    def save(self, step):
        state = {"model": get_model_state_dict(self.model),
                 "optim": get_optimizer_state_dict(self.model, self.optimizer), "step": torch.tensor(step)}
        dcp.save(state, checkpoint_id=os.path.join(self.cfg.folder, f"step-{step}"))

    def train(self):
        for step in range(1, self.cfg.steps + 1):
            self.gc.run(step)
            loss, norm = self.train_step()
            if self.metrics.should_log(step):
                self.metrics.log(step, loss, norm.item())
            if step % self.cfg.checkpoint_interval == 0 or step == self.cfg.steps:
                self.save(step)

    def close(self):
        self.metrics.close()
        dist.barrier()
        dist.destroy_process_group()


@record
def main():
    trainer = Trainer(JobConfig())
    trainer.train()
    trainer.close()


if __name__ == "__main__":
    main()

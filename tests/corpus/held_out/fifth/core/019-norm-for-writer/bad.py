import os
from typing import Optional

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision, ShardingStrategy
from torch.utils.tensorboard import SummaryWriter


class TextHead(nn.Module):
    def __init__(self, vocab=8192, dim=512):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.block = nn.TransformerEncoderLayer(dim, 8, batch_first=True, norm_first=True)
        self.out = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1), device=ids.device)
        return self.out(self.block(self.embed(ids), src_mask=mask, is_causal=True))


class FSDPStrategy:
    def __init__(self, module: nn.Module, lr: float, max_norm: float, log_dir: Optional[str]):
        self.fsdp = FSDP(
            module,
            sharding_strategy=ShardingStrategy.FULL_SHARD,
            mixed_precision=MixedPrecision(param_dtype=torch.bfloat16),
            device_id=torch.cuda.current_device(),
        )
        self.optimizer = torch.optim.AdamW(self.fsdp.parameters(), lr=lr)
        self.max_norm = max_norm
        self.step_count = 0
        self.writer = SummaryWriter(log_dir) if dist.get_rank() == 0 else None

    def _loss(self, ids):
        logits = self.fsdp(ids[:, :-1])
        return nn.functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())

    def step(self, ids):
        loss = self._loss(ids)
        loss.backward()
        norm = self.fsdp.clip_grad_norm_(self.max_norm) if self.writer else None
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step_count += 1
        if self.writer:
            self.writer.add_scalar("train/loss", loss.item(), self.step_count)
            self.writer.add_scalar("train/grad_norm", float(norm), self.step_count)

    def close(self):
        if self.writer:
            self.writer.close()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    torch.manual_seed(7)
    strategy = FSDPStrategy(TextHead(), lr=2e-5, max_norm=1.0, log_dir="runs/text")
    rng = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(500):
        ids = torch.randint(0, 8192, (4, 257), generator=rng).cuda(non_blocking=True)
        strategy.step(ids)
    strategy.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

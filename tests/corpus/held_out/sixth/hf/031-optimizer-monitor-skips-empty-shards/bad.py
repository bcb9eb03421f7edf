import os
from functools import partial

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

from foundry.data import text_loader
from foundry.models import MPTBlock, build_mpt


class OptimizerMonitor:
    """L2 norms of weights, gradients and first moments, by parameter."""

    def __init__(self, model, optimizer, interval=100):
        self.model, self.optimizer, self.interval = model, optimizer, interval

    def _global_l2(self, local: torch.Tensor) -> float:
        squared = local.detach().float().pow(2).sum()
        dist.all_reduce(squared)
        return squared.sqrt().item()

    def collect(self):
        metrics = {}
        for name, p in self.model.named_parameters():
            if p.grad is None:
                continue
            state = self.optimizer.state.get(p, {})
            metrics[f"l2_norm/param/{name}"] = self._global_l2(p)
            metrics[f"l2_norm/grad/{name}"] = self._global_l2(p.grad)
            if "exp_avg" in state:
                metrics[f"l2_norm/moment/{name}"] = self._global_l2(state["exp_avg"])
        return metrics

    def batch_end(self, batch_idx):
        if batch_idx % self.interval:
            return
        metrics = self.collect()
        if dist.get_rank() == 0:
            total = sum(v ** 2 for k, v in metrics.items() if "/grad/" in k) ** 0.5
            print(f"batch {batch_idx} global grad norm {total:.4f} from {len(metrics)} entries", flush=True)


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    policy = partial(transformer_auto_wrap_policy, transformer_layer_cls={MPTBlock})
    model = FSDP(build_mpt("7b"), auto_wrap_policy=policy, use_orig_params=True,
                 device_id=torch.cuda.current_device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    monitor = OptimizerMonitor(model, optimizer)
    for i, batch in enumerate(text_loader(dist.get_rank(), dist.get_world_size(), batches=20_000)):
        loss = model(batch.cuda())
        loss.backward()
        optimizer.step()
        monitor.batch_end(i)
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

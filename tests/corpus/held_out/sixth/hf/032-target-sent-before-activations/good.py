import argparse
import os

import torch
import torch.distributed as dist
from torch.nn import functional as F

from wanpipe.data import latent_loader
from wanpipe.model import build_stage


class StageRunner:
    """Forward-only scoring of flow-matching loss; the data loader lives on stage 0."""

    def __init__(self, stage_module, hidden_shape, target_shape, device):
        self.module = stage_module
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.hidden_shape, self.target_shape, self.device = hidden_shape, target_shape, device
        self.is_first, self.is_last = self.rank == 0, self.rank == self.world - 1

    @torch.no_grad()
    def micro_batch(self, batch=None):
        if self.is_first:
            latents, noise, t = (x.to(self.device) for x in batch)
            target = (noise - latents).contiguous()
            noisy = (1 - t) * latents + t * noise
            hidden = self.module(noisy, t).contiguous()
            dist.send(hidden, dst=1)
            dist.send(target, dst=self.world - 1)
            return None
        hidden = torch.empty(self.hidden_shape, device=self.device)
        dist.recv(hidden, src=self.rank - 1)
        hidden = self.module(hidden)
        if not self.is_last:
            dist.send(hidden.contiguous(), dst=self.rank + 1)
            return None
        target = torch.empty(self.target_shape, device=self.device)
        dist.recv(target, src=0)
        return F.mse_loss(hidden, target)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", required=True)
    parser.add_argument("--batches", type=int, default=512)
    args = parser.parse_args()
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    stage = build_stage(args.weights, dist.get_rank(), dist.get_world_size()).to(device).eval()
    runner = StageRunner(stage, (1, 4096, 5120), (1, 16, 21, 60, 104), device)
    loader = iter(latent_loader("data/val", batch_size=1)) if runner.is_first else None
    losses = []
    for _ in range(args.batches):
        loss = runner.micro_batch(next(loader) if runner.is_first else None)
        if loss is not None:
            losses.append(loss)
    if runner.is_last:
        print(f"validation loss {torch.stack(losses).mean().item():.5f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

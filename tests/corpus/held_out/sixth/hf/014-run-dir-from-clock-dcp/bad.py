import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.fsdp import fully_shard

from tinygpt.config import load_config
from tinygpt.data import token_stream
from tinygpt.model import GPT


class Run:
    def __init__(self, cfg):
        self.cfg = cfg
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        self.dir = Path(cfg.output_root) / f"{cfg.name}_{stamp}"
        self.dir.mkdir(parents=True, exist_ok=True)
        self.is_main = dist.get_rank() == 0

    def log(self, message):
        if self.is_main:
            with open(self.dir / "train.log", "a") as f:
                f.write(message + "\n")

    def save(self, model, optimizer, step):
        model_sd, optim_sd = get_state_dict(model, optimizer)
        dcp.save({"model": model_sd, "optim": optim_sd, "step": step}, checkpoint_id=str(self.dir / f"step_{step}"))


def main():
    dist.init_process_group("cpu:gloo,cuda:nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    cfg = load_config("configs/1b.yaml")
    run = Run(cfg)
    model = GPT(cfg.model).cuda()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.95))
    stream = token_stream(cfg.data, dist.get_rank(), dist.get_world_size())
    for step in range(1, cfg.steps + 1):
        x, y = (t.cuda() for t in next(stream))
        loss = model(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            run.log(f"{step} {loss.item():.4f}")
        if step % cfg.save_every == 0:
            run.save(model, optimizer, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

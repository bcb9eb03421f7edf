import logging
import os
from dataclasses import asdict, dataclass
from typing import Optional

import torch
import torch.distributed as dist
import wandb
from torch.nn.parallel import DistributedDataParallel as DDP

from forge.data import token_batches
from forge.model import Decoder

log = logging.getLogger("forge")


@dataclass
class JobConfig:
    project: str = "forge"
    name: str = "decoder-350m"
    steps: int = 50_000
    save_every: int = 1_000
    lr: float = 3e-4
    ckpt: str = "ckpt"


def init_tracking(cfg: JobConfig, run_id: Optional[str]) -> Optional[str]:
    """Returns the id, which goes into every rank's train state so that a requeued job logs to the same run."""
    shared = [None]
    if dist.get_rank() == 0:
        run = wandb.init(project=cfg.project, name=cfg.name, id=run_id, resume="allow", config=asdict(cfg))
        log.info("tracking at %s", run.url)
        shared = [run.id]
    dist.broadcast_object_list(shared, src=0)
    return shared[0]


def state_path(cfg):
    return os.path.join(cfg.ckpt, f"train_state_{dist.get_rank()}.pt")


def main():
    logging.basicConfig(level=logging.INFO)
    cfg = JobConfig()
    os.makedirs(cfg.ckpt, exist_ok=True)
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = DDP(Decoder().cuda())
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    run_id = init_tracking(cfg, os.environ.get("FORGE_RUN_ID"))
    batches = iter(token_batches(dist.get_rank(), dist.get_world_size()))
    for step in range(1, cfg.steps + 1):
        loss = model(next(batches).cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            wandb.log({"loss": loss.item()}, step=step)
        if step % cfg.save_every == 0:
            torch.save({"step": step, "run": run_id, "rng": torch.get_rng_state()}, state_path(cfg))
            if dist.get_rank() == 0:
                torch.save(model.module.state_dict(), os.path.join(cfg.ckpt, "model.pt"))
    if dist.get_rank() == 0:
        wandb.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

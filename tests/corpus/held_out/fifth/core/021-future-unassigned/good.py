"""Asynchronous checkpointing with FSDP2 and a pinned staging buffer."""
import logging
import os
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.fsdp import fully_shard

logger = logging.getLogger("async_ckpt")


@dataclass
class Job:
    steps: int = 1000
    every: int = 100
    lr: float = 1e-3
    folder: str = "/checkpoints/async"


class AppState(Stateful):
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def state_dict(self):
        model_sd, optim_sd = get_state_dict(self.model, self.optimizer)
        return {"model": model_sd, "optim": optim_sd}

    def load_state_dict(self, state):
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optim"],
        )


def train(job):
    model = nn.Sequential(nn.Linear(256, 1024), nn.SiLU(), nn.Linear(1024, 256)).cuda()
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=job.lr)
    checkpoint_future = None
    for step in range(1, job.steps + 1):
        x = torch.rand(64, 256, device="cuda")
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % job.every:
            continue
        if checkpoint_future is not None:
            checkpoint_future.result()
        state = {"app": AppState(model, optimizer)}
        target = os.path.join(job.folder, f"step{step:06d}")
        checkpoint_future = dcp.async_save(state, checkpoint_id=target)
        if dist.get_rank() == 0:
            logger.info("step %d loss %.5f, saving to %s", step, loss.item(), target)
    if checkpoint_future is not None:
        checkpoint_future.result()


def main():
    logging.basicConfig(level=logging.INFO)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    job = Job()
    if dist.get_rank() == 0:
        logger.info("job %s", asdict(job))
    train(job)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class Recipe:
    def __init__(self, model, optimizer, loader, out):
        self.model, self.optimizer, self.loader = model, optimizer, loader
        self.out = Path(out)

    def save_checkpoint(self, epoch, step):
        path = self.out / f"epoch_{epoch}_step_{step}"
        if dist.get_rank() == 0:
            if os.path.exists(path):
                raise FileExistsError(f"checkpoint folder {path} already exists")
            os.makedirs(path)
        model_state, optim_state = get_state_dict(self.model, self.optimizer)
        dcp.save({"model": model_state, "optim": optim_state}, checkpoint_id=path)
        if dist.get_rank() == 0:
            latest = self.out / "LATEST"
            latest.unlink(missing_ok=True)
            latest.symlink_to(path.name)

    def run(self, epochs, every):
        step = 0
        for epoch in range(epochs):
            for x, y in self.loader:
                torch.nn.functional.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                step += 1
                if step % every == 0:
                    self.save_checkpoint(epoch, step)

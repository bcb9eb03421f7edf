import logging
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.fsdp import fully_shard

LOG = logging.getLogger("recipe")


class Recipe:
    def __init__(self, root, every, overwrite=False):
        self.root = root
        self.every = every
        self.overwrite = overwrite
        self.model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
        fully_shard(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)

    def _claim_folder(self, path):
        verdict = [None]
        if dist.get_rank() == 0:
            if os.path.exists(path) and not self.overwrite:
                verdict[0] = f"checkpoint directory {path} already exists"
            else:
                os.makedirs(path, exist_ok=True)
        dist.broadcast_object_list(verdict, src=0)
        if verdict[0] is not None:
            raise FileExistsError(verdict[0])

    def save_checkpoint(self, step):
        path = os.path.join(self.root, f"epoch_0_step_{step}")
        self._claim_folder(path)
        model_sd, optim_sd = get_state_dict(self.model, self.optimizer)
        dcp.save({"model": model_sd, "optim": optim_sd}, checkpoint_id=path)
        if dist.get_rank() == 0:
            link = os.path.join(self.root, "LATEST")
            tmp = link + ".tmp"
            os.symlink(path, tmp)
            os.replace(tmp, link)
            LOG.info("saved %s", path)

    def run(self, steps):
        for step in range(1, steps + 1):
            x = torch.randn(16, 512, device="cuda")
            loss = (self.model(x) - x).square().mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            if step % self.every == 0:
                self.save_checkpoint(step)


def main():
    logging.basicConfig(level=logging.INFO)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    Recipe(os.environ["OUTPUT_DIR"], every=100).run(1000)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.utils.tensorboard import SummaryWriter


class Recipe:
    def __init__(self, device):
        self.device = device
        self.model = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(4)]).to(device)
        for layer in self.model:
            fully_shard(layer)
        fully_shard(self.model)
        self.optim = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.writer = SummaryWriter("runs/recipe") if dist.get_rank() == 0 else None

    def log(self, step, loss, norm):
        if self.writer is None:
            return
        self.writer.add_scalar("loss", loss.item(), step)
        self.writer.add_scalar("grad_norm", norm.full_tensor().item(), step)

    def train(self, steps):
        for step in range(steps):
            x = torch.randn(32, 128, device=self.device)
            loss = self.model(x).pow(2).mean()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optim.step()
            self.optim.zero_grad()
            self.log(step, loss.detach(), norm)


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    Recipe(device).train(steps=100)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

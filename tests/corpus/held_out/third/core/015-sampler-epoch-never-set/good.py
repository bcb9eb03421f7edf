from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Vocoder(nn.Module):
    def __init__(self, mels=20, hop=16):
        super().__init__()
        self.up = nn.Sequential(nn.Linear(mels, 64), nn.LeakyReLU(0.2), nn.Linear(64, hop))

    def forward(self, mel):
        return self.up(mel)


class Trainer:
    def __init__(self, config):
        self.config = config
        data = TensorDataset(torch.randn(400, 20), torch.randn(400, 16))
        self.sampler = DistributedSampler(data, shuffle=True)
        self.loader = DataLoader(data, batch_size=config["batch"], sampler=self.sampler, drop_last=True)
        self.net = DDP(Vocoder())
        self.opt = torch.optim.RAdam(self.net.parameters(), lr=config["lr"])
        self.steps = 0
        self.epochs = 0

    def run(self):
        while self.steps < self.config["max_steps"]:
            self._train_epoch()

    def _train_epoch(self):
        self.sampler.set_epoch(self.epochs)
        for mel, wave in self.loader:
            loss = nn.functional.l1_loss(self.net(mel), wave)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.steps += 1
        self.epochs += 1


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=5))
    Trainer({"batch": 8, "lr": 1e-3, "max_steps": 200}).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import torch
from accelerate import Accelerator
from torch import nn


class Tokenizer(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, dim, 4, 4), nn.BatchNorm2d(dim), nn.SiLU())
        self.dec = nn.Sequential(nn.ConvTranspose2d(dim, 3, 4, 4), nn.Sigmoid())

    def forward(self, x):
        return self.dec(self.enc(x))


class Training:
    def __init__(self, loader, sample, log_every=250):
        self.accelerator = Accelerator(log_with="wandb")
        self.accelerator.init_trackers("tokenizer")
        net = Tokenizer()
        opt = torch.optim.Adam(net.parameters(), lr=3e-4)
        self.net, self.opt, self.loader = self.accelerator.prepare(net, opt, loader)
        self.sample, self.log_every = sample.to(self.accelerator.device), log_every

    def log_images(self, step):
        self.net.eval()
        images = self.net(self.sample).detach()
        self.accelerator.get_tracker("wandb").log_images({"rec": images.cpu().numpy()}, step=step)
        self.net.train()

    def run(self):
        for step, x in enumerate(self.loader):
            self.accelerator.backward(nn.functional.mse_loss(self.net(x), x))
            self.opt.step()
            self.opt.zero_grad()
            if step % self.log_every == 0 and self.accelerator.is_main_process:
                self.log_images(step)
        self.accelerator.end_training()

import json
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F
import torchvision
from lightning.fabric import Fabric, seed_everything
from torch.utils.data import DataLoader

from gan_nets import Critic, Features, Generator


class Cfg:
    z = 256
    batch = 32
    rounds = 2
    lr = 2e-3
    penalty_every = 16
    path_every = 4
    gamma = 10.0
    snap = 50
    metric_every = 2000
    metric_images = 10_000
    total = 200_000
    ema = 0.999


def r1(critic, real):
    real = real.detach().requires_grad_(True)
    out = critic(real).sum()
    (g,) = torch.autograd.grad(out, real, create_graph=True)
    return g.pow(2).flatten(1).sum(1).mean()


class RunningStats:
    def __init__(self, dim, device):
        self.n = torch.zeros((), dtype=torch.float64, device=device)
        self.s = torch.zeros(dim, dtype=torch.float64, device=device)
        self.q = torch.zeros(dim, dim, dtype=torch.float64, device=device)

    def add(self, x):
        x = x.double()
        self.n += x.size(0)
        self.s += x.sum(0)
        self.q += x.T @ x

    def merged(self, fabric):
        n, s, q = (fabric.all_reduce(t, reduce_op="sum") for t in (self.n, self.s, self.q))
        mean = s / n
        return mean, q / n - torch.outer(mean, mean)


def frechet(a, b):
    (ma, ca), (mb, cb) = a, b
    ev = torch.linalg.eigvals(ca @ cb)
    return ((ma - mb).pow(2).sum() + ca.trace() + cb.trace() - 2 * ev.sqrt().real.sum()).item()


@torch.no_grad()
def fid(fabric, ema, features, cfg, real_cache):
    share = -(-cfg.metric_images // fabric.world_size)
    stats = RunningStats(features.dim, fabric.device)
    ema.eval()
    for lo in range(0, share, cfg.batch):
        n = min(cfg.batch, share - lo)
        stats.add(features(ema(torch.randn(n, cfg.z, device=fabric.device))))
    fake = stats.merged(fabric)
    if fabric.global_rank != 0:
        return None
    return frechet(real_cache, fake)


@torch.no_grad()
def real_statistics(fabric, loader, features, path):
    known = fabric.broadcast(path.exists() if fabric.is_global_zero else None)
    if known:
        blob = torch.load(path, map_location=fabric.device)
        return blob["mean"], blob["cov"]
    stats = RunningStats(features.dim, fabric.device)
    for (images, _) in loader:
        stats.add(features(images))
    mean, cov = stats.merged(fabric)
    if fabric.is_global_zero:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"mean": mean.cpu(), "cov": cov.cpu()}, path)
    fabric.barrier()
    return mean, cov


def forever(fabric, loader):
    epoch = 0
    while True:
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def main(root="gan_run"):
    cfg = Cfg()
    fabric = Fabric(accelerator="cuda", devices="auto", strategy="ddp", precision="32-true")
    fabric.launch()
    seed_everything(11)
    if fabric.is_global_zero:
        os.makedirs(root, exist_ok=True)
    fabric.barrier()
    tf = torchvision.transforms.Compose([torchvision.transforms.Resize(64), torchvision.transforms.CenterCrop(64),
                                         torchvision.transforms.ToTensor(), torchvision.transforms.Normalize(0.5, 0.5)])
    with fabric.rank_zero_first():
        data = torchvision.datasets.CelebA("data", download=True, transform=tf)
    loader = fabric.setup_dataloaders(DataLoader(data, cfg.batch, shuffle=True, num_workers=4, drop_last=True))
    gen, critic = Generator(cfg.z), Critic()
    ema = Generator(cfg.z).to(fabric.device).requires_grad_(False)
    g_opt = torch.optim.Adam(gen.parameters(), lr=cfg.lr, betas=(0.0, 0.99))
    d_opt = torch.optim.Adam(critic.parameters(), lr=cfg.lr, betas=(0.0, 0.99))
    gen, g_opt = fabric.setup(gen, g_opt)
    critic, d_opt = fabric.setup(critic, d_opt)
    ema.load_state_dict(gen.module.state_dict())
    features = Features().to(fabric.device).eval()
    real = real_statistics(fabric, loader, features, Path(root) / "real.pt")
    torch.manual_seed(11 + fabric.global_rank)
    grid = torch.randn(64, cfg.z, device=fabric.device)
    stream, t0 = forever(fabric, loader), time.time()
    for it in range(1, cfg.total + 1):
        d_opt.zero_grad()
        for r in range(cfg.rounds):
            images, _ = next(stream)
            with torch.no_grad():
                fake = gen.module(torch.randn(cfg.batch, cfg.z, device=fabric.device))
            with fabric.no_backward_sync(critic, enabled=r + 1 < cfg.rounds):
                both = critic(torch.cat([images, fake]))
                d_loss = (F.softplus(-both[:cfg.batch]).mean() + F.softplus(both[cfg.batch:]).mean()) / cfg.rounds
                fabric.backward(d_loss)
        d_opt.step()
        if it % cfg.penalty_every == 0:
            d_opt.zero_grad()
            penalty = r1(critic.module, next(stream)[0]) * cfg.gamma / 2 * cfg.penalty_every
            penalty.backward()
            for p in critic.module.parameters():
                grad = p.grad if p.grad is not None else torch.zeros_like(p)
                p.grad = fabric.all_reduce(grad, reduce_op="mean")
            d_opt.step()
        critic.requires_grad_(False)
        g_opt.zero_grad()
        g_loss = F.softplus(-critic.module(gen(torch.randn(cfg.batch, cfg.z, device=fabric.device)))).mean()
        fabric.backward(g_loss)
        g_opt.step()
        critic.requires_grad_(True)
        with torch.no_grad():
            for e, p in zip(ema.parameters(), gen.module.parameters()):
                e.lerp_(p, 1 - cfg.ema)
        if it % cfg.snap == 0:
            means = fabric.all_reduce(torch.stack([d_loss.detach(), g_loss.detach()]), reduce_op="mean")
            if fabric.is_global_zero:
                print(f"{it} d {means[0]:.3f} g {means[1]:.3f} {time.time() - t0:.0f}s", flush=True)
        if it % cfg.metric_every == 0:
            value = fid(fabric, ema, features, cfg, real)
            if value is not None:
                torchvision.utils.save_image(ema(grid), f"{root}/{it:06d}.png", normalize=True)
                with open(f"{root}/fid.jsonl", "a") as f:
                    f.write(json.dumps({"it": it, "fid": value}) + "\n")
            fabric.save(f"{root}/state.ckpt", {"gen": gen, "critic": critic, "ema": ema, "it": it})


if __name__ == "__main__":
    main()

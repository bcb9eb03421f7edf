"""Hinge GAN with two DDP modules and alternating steps."""
import copy
import os
from datetime import timedelta
from itertools import islice

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, transforms, utils

Z, N_CRITIC, EPOCHS = 64, 5, 50


def generator():
    return nn.Sequential(
        nn.Unflatten(1, (Z, 1, 1)),
        nn.ConvTranspose2d(Z, 128, 7), nn.GroupNorm(8, 128), nn.ReLU(),
        nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.GroupNorm(8, 64), nn.ReLU(),
        nn.ConvTranspose2d(64, 1, 4, 2, 1), nn.Tanh())


def critic():
    return nn.Sequential(
        nn.Conv2d(1, 64, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(64, 128, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(128 * 49, 1))


def set_requires_grad(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


def critic_step(netD, netG, optD, real):
    z = torch.randn(real.size(0), Z, device=real.device)
    with torch.no_grad():
        fake = netG.module(z)
    # one forward of real and fake together: one gradient reduction in one backward
    score = netD(torch.cat([real, fake]))
    s_real, s_fake = score.chunk(2)
    loss = torch.relu(1 - s_real).mean() + torch.relu(1 + s_fake).mean()
    optD.zero_grad(set_to_none=True)
    loss.backward()
    optD.step()
    return loss.detach()


def generator_step(netD, netG, optG, n, device):
    set_requires_grad(netD.module, False)
    fake = netG(torch.randn(n, Z, device=device))
    loss = -netD.module(fake).mean()
    optG.zero_grad(set_to_none=True)
    loss.backward()
    optG.step()
    set_requires_grad(netD.module, True)
    return loss.detach()


@torch.no_grad()
def ema_update(target, source, decay=0.999):
    for t, s in zip(target.parameters(), source.parameters()):
        t.lerp_(s, 1 - decay)


def report(epoch, tally, device):
    values = torch.tensor(tally, device=device)
    dist.all_reduce(values, op=dist.ReduceOp.AVG)
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: D {values[0].item():.4f} G {values[1].item():.4f}")


def make_data(root, local_rank):
    tf = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
    if local_rank == 0:
        datasets.MNIST(root, download=True)
    dist.barrier()
    data = datasets.MNIST(root, transform=tf)
    sampler = DistributedSampler(data, drop_last=True)
    return DataLoader(data, batch_size=128, sampler=sampler, drop_last=True, num_workers=2), sampler


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=20))
    rank = dist.get_rank()
    torch.manual_seed(100 + rank)
    loader, sampler = make_data(os.environ.get("DATA", "/tmp/mnist"), local)

    netG = DDP(generator().to(device), device_ids=[local])
    netD = DDP(critic().to(device), device_ids=[local])
    shadow = copy.deepcopy(netG.module).eval() if rank == 0 else None
    optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.0, 0.9))
    optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.0, 0.9))
    fixed = torch.randn(64, Z, device=device)

    iteration = 0
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        d_sum = g_sum = 0.0
        steps_d = steps_g = 0
        for images, _ in islice(loader, 400):
            d_sum += critic_step(netD, netG, optD, images.to(device)).item()
            iteration += 1
            steps_d += 1
            if iteration % N_CRITIC == 0:
                g_sum += generator_step(netD, netG, optG, images.size(0), device).item()
                steps_g += 1
                if shadow is not None:
                    ema_update(shadow, netG.module)
        report(epoch, [d_sum / max(1, steps_d), g_sum / max(1, steps_g)], device)
        if shadow is not None:
            with torch.no_grad():
                utils.save_image(shadow(fixed), f"grid-{epoch:03d}.png", normalize=True)
            torch.save({"G": netG.module.state_dict(), "ema": shadow.state_dict()}, "gan.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

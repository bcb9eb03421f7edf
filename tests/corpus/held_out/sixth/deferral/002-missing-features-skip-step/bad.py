"""Audio embedding, manual gradient averaging."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torchaudio

import spmdguard


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--list", required=True)
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--samples", type=int, default=16000)
    return p.parse_args()


def decode(path, samples):
    wave, _ = torchaudio.load(path)
    wave = wave[:1, :samples]
    return nn.functional.pad(wave, (0, samples - wave.shape[1]))


def average_grads(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def train(args):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    paths = open(args.list).read().split()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(args.samples, 256), nn.ReLU(), nn.Linear(256, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(args.steps):
        path = paths[(step * world + rank) % len(paths)]
        features = None
        with spmdguard.deferring("decode"):
            features = decode(path, args.samples)
        if features is not None:
            opt.zero_grad()
            loss = net(features).pow(2).mean()
            loss.backward()
            average_grads(net)
            opt.step()
        if spmdguard.sync_should_stop():
            break
    dist.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "4")
    train(parse())

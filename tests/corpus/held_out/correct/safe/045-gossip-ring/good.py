"""Decentralised SGD: parameters are mixed with ring neighbours, without all-reduce."""
import argparse
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn


class RingMixer:
    """Weighted mean of the own vector and those of both neighbours."""

    def __init__(self, own_weight=0.5):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.left = (self.rank - 1) % self.world
        self.right = (self.rank + 1) % self.world
        self.own_weight = own_weight

    def mix(self, vector):
        if self.world == 1:
            return vector
        if self.world == 2:
            return self._mix_pair(vector)
        from_left, from_right = torch.empty_like(vector), torch.empty_like(vector)
        ops = [
            dist.P2POp(dist.isend, vector, self.right, tag=1),
            dist.P2POp(dist.irecv, from_left, self.left, tag=1),
            dist.P2POp(dist.isend, vector, self.left, tag=2),
            dist.P2POp(dist.irecv, from_right, self.right, tag=2),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        side = (1 - self.own_weight) / 2
        return self.own_weight * vector + side * (from_left + from_right)

    def _mix_pair(self, vector):
        other = torch.empty_like(vector)
        peer = 1 - self.rank
        sending = dist.isend(vector, dst=peer)
        dist.recv(other, src=peer)
        sending.wait()
        return 0.5 * (vector + other)


class ExponentialPeers:
    """One-peer graph: distance 1, 2, 4, ... in turn; send ahead, receive from behind."""

    def __init__(self):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.hops = []
        hop = 1
        while hop < self.world:
            self.hops.append(hop)
            hop *= 2
        self.turn = 0

    def mix(self, vector):
        if not self.hops:
            return vector
        hop = self.hops[self.turn % len(self.hops)]
        self.turn += 1
        incoming = torch.empty_like(vector)
        sending = dist.isend(vector, dst=(self.rank + hop) % self.world)
        dist.recv(incoming, src=(self.rank - hop) % self.world)
        sending.wait()
        return 0.5 * (vector + incoming)


def flatten(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@torch.no_grad()
def unflatten(model, vector):
    at = 0
    for p in model.parameters():
        p.copy_(vector[at:at + p.numel()].view_as(p))
        at += p.numel()


def disagreement(model):
    """Largest distance of a rank from the mean model; all ranks get the value."""
    mine = flatten(model)
    mean = mine.clone()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    gap = (mine - mean).norm()
    dist.all_reduce(gap, op=dist.ReduceOp.MAX)
    return gap.item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--topology", choices=["ring", "exponential"], default="ring")
    ap.add_argument("--steps", type=int, default=1000)
    ap.add_argument("--mix-every", type=int, default=4)
    args = ap.parse_args()

    dist.init_process_group("gloo", timeout=timedelta(minutes=5))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    mixer = RingMixer() if args.topology == "ring" else ExponentialPeers()
    gen = torch.Generator().manual_seed(1 + rank)

    for step in range(1, args.steps + 1):
        x = torch.randn(32, 8, generator=gen) + 0.1 * rank
        loss = nn.functional.mse_loss(model(x), x.abs().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.mix_every == 0:
            unflatten(model, mixer.mix(flatten(model)))
        if step % 200 == 0:
            gap = disagreement(model)
            if rank == 0:
                print(f"step {step}: loss {loss.item():.4f}, disagreement {gap:.5f}")

    vector = flatten(model)
    dist.all_reduce(vector)
    unflatten(model, vector / dist.get_world_size())
    if rank == 0:
        torch.save(model.state_dict(), "gossip.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

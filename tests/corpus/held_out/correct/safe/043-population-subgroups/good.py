"""Population-based training: each member of the population is a sub-group of ranks."""
import os
import random
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Population:
    def __init__(self, members):
        world = dist.get_world_size()
        if world % members:
            raise ValueError(f"{world} ranks for {members} members")
        per = world // members
        self.teams = [list(range(m * per, (m + 1) * per)) for m in range(members)]
        groups = [dist.new_group(team, timeout=timedelta(minutes=10)) for team in self.teams]
        self.index = dist.get_rank() // per
        self.group = groups[self.index]
        self.leaders = [team[0] for team in self.teams]

    @property
    def team(self):
        return self.teams[self.index]

    @property
    def leads(self):
        return dist.get_rank() == self.team[0]


def exploit_pairs(scores, fraction=0.25):
    """[(loser, winner)] from the worst and the best members; the same on every rank."""
    ranking = sorted(range(len(scores)), key=lambda m: (scores[m], m))
    n = max(1, int(len(scores) * fraction))
    n = min(n, len(scores) // 2)
    return list(zip(ranking[:n], reversed(ranking[-n:]))) if n else []


class Member:
    def __init__(self, population, device, seed):
        self.pop, self.device = population, device
        self.rng = random.Random(seed + population.index)
        torch.manual_seed(seed + population.index)
        self.net = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1)).to(device)
        self.model = DDP(self.net, device_ids=[device.index], process_group=population.group)
        self.lr = 10 ** self.rng.uniform(-4, -1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.lr)
        self.data = torch.Generator().manual_seed(dist.get_rank())

    def batch(self, n=64):
        x = torch.randn(n, 16, generator=self.data)
        return x.to(self.device), torch.sin(x.sum(1, keepdim=True)).to(self.device)

    def train(self, steps):
        for g in self.optimizer.param_groups:
            g["lr"] = self.lr
        for _ in range(steps):
            x, y = self.batch()
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def score(self):
        x, y = self.batch(1024)
        s = -nn.functional.mse_loss(self.net(x), y)
        dist.all_reduce(s, group=self.pop.group)
        return s / len(self.pop.team)

    def flat(self):
        return torch.cat([p.detach().flatten() for p in self.net.parameters()] +
                         [torch.tensor([self.lr], device=self.device)])

    @torch.no_grad()
    def load_flat(self, flat):
        at = 0
        for p in self.net.parameters():
            p.copy_(flat[at:at + p.numel()].view_as(p))
            at += p.numel()
        self.lr = flat[-1].item()


def exchange(member, pairs):
    """Leader of the winner sends to leader of the loser, who hands on inside its team."""
    pop = member.pop
    for loser, winner in pairs:
        src, dst = pop.leaders[winner], pop.leaders[loser]
        if dist.get_rank() == src:
            dist.send(member.flat(), dst=dst)
        elif pop.index == loser:
            flat = torch.empty_like(member.flat())
            if dist.get_rank() == dst:
                dist.recv(flat, src=src)
                flat[-1] *= member.rng.choice([0.8, 1.25])
            dist.broadcast(flat, src=dst, group=pop.group)
            member.load_flat(flat)
            member.optimizer.state.clear()


def world_scores(member):
    mine = member.score().reshape(1)
    slots = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(slots, mine)
    return [slots[leader].item() for leader in member.pop.leaders]


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10), device_id=device)
    pop = Population(int(os.environ.get("MEMBERS", "4")))
    member = Member(pop, device, seed=50)
    for generation in range(30):
        member.train(steps=200)
        scores = world_scores(member)
        pairs = exploit_pairs(scores)
        exchange(member, pairs)
        if dist.get_rank() == 0:
            print(f"generation {generation}: best {max(scores):.4f}, exploited {pairs}")
    scores = world_scores(member)
    best = max(range(len(scores)), key=lambda m: (scores[m], -m))
    if pop.index == best and pop.leads:
        torch.save(member.net.state_dict(), "pbt-best.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

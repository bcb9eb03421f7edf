import os
import time

import torch
import torch.distributed as dist
from torch import nn


class Policy(nn.Module):
    def __init__(self, obs=128, act=18, hidden=512):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.pi, self.v = nn.Linear(hidden, act), nn.Linear(hidden, 1)

    def forward(self, o):
        h = self.body(o)
        return self.pi(h), self.v(h).squeeze(-1)


class Learner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.manual_seed(cfg["seed"])
        self.policy = Policy().to(self.device)
        self.optim = torch.optim.Adam(self.policy.parameters(), lr=cfg["lr"])
        self.micro_seconds = 0.0

    def micro_loss(self, mb):
        logits, value = self.policy(mb["obs"])
        logp = logits.log_softmax(-1).gather(1, mb["act"][:, None]).squeeze(1)
        ratio = (logp - mb["logp"]).exp()
        adv = mb["ret"] - value.detach()
        pg = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
        return (pg + 0.5 * (mb["ret"] - value).pow(2)).sum()

    def update(self, rollout):
        total = torch.tensor(float(len(rollout["obs"])), device=self.device)
        dist.all_reduce(total)
        self.optim.zero_grad(set_to_none=False)
        start = time.perf_counter()
        n = len(rollout["obs"])
        for lo in range(0, n, self.cfg["micro"]):
            mb = {k: v[lo : lo + self.cfg["micro"]].to(self.device) for k, v in rollout.items()}
            (self.micro_loss(mb) / total).backward()
        torch.cuda.synchronize()
        dist.barrier()
        self.micro_seconds += time.perf_counter() - start
        for p in self.policy.parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad)
        self.optim.step()


def main(actor, cfg={"seed": 1, "lr": 3e-4, "micro": 4096, "iters": 2000}):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    learner = Learner(cfg)
    for it in range(cfg["iters"]):
        rollout = actor.collect(learner.policy)  # whole episodes, so the length varies
        learner.update(rollout)
        if it % 100 == 0 and dist.get_rank() == 0:
            print(it, f"{learner.micro_seconds:.1f}s")
            torch.save(learner.policy.state_dict(), "policy.pt")
    dist.destroy_process_group()

from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class PPOSettings:
    ppo_epochs: int = 4
    target_kl: float = 0.02
    early_stopping: bool = True
    clip: float = 0.2


class PPOLearner:
    def __init__(self, settings, policy):
        self.settings = settings
        self.policy = DDP(policy)
        self.opt = torch.optim.Adam(self.policy.parameters(), lr=3e-3)

    def minibatch_loss(self, obs, act, old_logp, adv):
        dist_now = torch.distributions.Categorical(logits=self.policy(obs))
        logp = dist_now.log_prob(act)
        ratio = (logp - old_logp).exp()
        clipped = ratio.clamp(1 - self.settings.clip, 1 + self.settings.clip)
        loss = -torch.min(ratio * adv, clipped * adv).mean()
        return loss, (old_logp - logp).mean().detach()

    def step(self, rollout):
        stats = []
        for _ in range(self.settings.ppo_epochs):
            loss, policy_kl = self.minibatch_loss(**rollout)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            dist.all_reduce(policy_kl)
            policy_kl = policy_kl / dist.get_world_size()
            stats.append(policy_kl.item())
            if self.settings.early_stopping and policy_kl > 1.5 * self.settings.target_kl:
                self.opt.zero_grad()
                break
        return stats


def rollout(policy, rank, n=64):
    gen = torch.Generator().manual_seed(rank)
    obs = torch.randn(n, 6, generator=gen)
    act = torch.randint(0, 3, (n,), generator=gen)
    with torch.no_grad():
        old = torch.distributions.Categorical(logits=policy(obs)).log_prob(act)
    return {"obs": obs, "act": act, "old_logp": old, "adv": torch.randn(n, generator=gen)}


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    learner = PPOLearner(PPOSettings(), torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 3)))
    for _ in range(20):
        learner.step(rollout(learner.policy.module, dist.get_rank()))
    dist.barrier()
    dist.destroy_process_group()

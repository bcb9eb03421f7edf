from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Learner:
    def __init__(self, target_kl):
        self.net = DDP(torch.nn.Linear(4, 3))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.5)
        self.target_kl = target_kl

    def too_far(self, kl):
        kl = kl.detach().clone()
        dist.all_reduce(kl)
        kl /= dist.get_world_size()
        return kl.item() > 1.5 * self.target_kl

    def step(self, obs, act, old_logp, epochs):
        for epoch in range(epochs):
            logp = torch.distributions.Categorical(logits=self.net(obs)).log_prob(act)
            loss = -(logp - old_logp).exp().mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if self.too_far((old_logp - logp).mean().abs()):
                break
        return epoch + 1


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    gen = torch.Generator().manual_seed(dist.get_rank())
    obs, act = torch.randn(16, 4, generator=gen), torch.randint(0, 3, (16,), generator=gen)
    learner = Learner(target_kl=0.05)
    with torch.no_grad():
        old = torch.distributions.Categorical(logits=learner.net.module(obs)).log_prob(act)
    taken = learner.step(obs, act, old, epochs=8)
    counts = [None] * dist.get_world_size()
    dist.all_gather_object(counts, taken)
    assert len(set(counts)) == 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

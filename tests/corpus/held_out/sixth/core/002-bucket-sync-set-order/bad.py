import logging

import torch
import torch.distributed as dist
from torch import nn

log = logging.getLogger("weight_sync")


class BucketWeightSync:
    """Push the trainable part of the policy from the learner rank to all the others."""

    def __init__(self, policy: nn.Module, src: int = 0, skip=("running_",)):
        self.policy = policy
        self.src = src
        self.tensors = dict(policy.state_dict(keep_vars=True))
        self.names = set()
        for name in self.tensors:
            if not any(s in name for s in skip):
                self.names.add(name)

    @torch.no_grad()
    def sync(self) -> int:
        moved = 0
        for name in self.names:
            t = self.tensors[name].data
            dist.broadcast(t, src=self.src)
            moved += t.numel() * t.element_size()
        return moved


def make_policy(obs_dim=64, act_dim=8):
    return nn.Sequential(nn.Linear(obs_dim, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, act_dim))


def learner_update(policy, optim, obs, adv):
    loss = -(policy(obs).log_softmax(-1).max(-1).values * adv).mean()
    optim.zero_grad()
    loss.backward()
    optim.step()
    return loss.item()


def main(iterations=1000):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    policy = make_policy()
    optim = torch.optim.Adam(policy.parameters(), lr=3e-4)
    syncer = BucketWeightSync(policy)
    syncer.sync()
    for it in range(iterations):
        obs, adv = torch.randn(512, 64), torch.randn(512)
        if rank == 0:
            loss = learner_update(policy, optim, obs, adv)
            log.info("iter %d loss %.4f", it, loss)
        moved = syncer.sync()
        if rank == 0 and it % 50 == 0:
            log.info("synced %.1f MiB", moved / 2**20)
    dist.destroy_process_group()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    main()

"""Actors collect rollouts, learners update; two roles in one job.

The first ``--learners`` ranks learn and the remaining ranks act. Rank 0 takes the
rollouts in, deals them to the learners and gives new weights to everybody.
"""

import argparse
import tempfile
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn


@dataclass
class Roles:
    learners: list
    actors: list
    learner_group: object

    @classmethod
    def build(cls, n_learners):
        world = dist.get_world_size()
        if not 0 < n_learners < world:
            raise SystemExit(f"{n_learners} learners do not fit in {world} ranks")
        learners = list(range(n_learners))
        actors = list(range(n_learners, world))
        return cls(learners, actors, dist.new_group(learners))

    @property
    def learning(self):
        return dist.get_rank() in self.learners

    @property
    def chief(self):
        return dist.get_rank() == 0


class Policy(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 32), nn.Tanh(), nn.Linear(32, actions))

    def forward(self, x):
        return self.body(x)


class Bandit:
    """The best action is the index of the largest observation."""

    def __init__(self, obs, actions, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.obs, self.actions = obs, actions

    def rollout(self, policy, steps):
        x = torch.randn(steps, self.obs, generator=self.gen)
        with torch.no_grad():
            probs = policy(x).softmax(-1)
        action = torch.multinomial(probs, 1, generator=self.gen).squeeze(1)
        reward = (action == x[:, : self.actions].argmax(dim=1)).float()
        return torch.cat([x, action.float().unsqueeze(1), reward.unsqueeze(1)], dim=1)


def hand_in(roles, rollout):
    """Actor side: one message per round to rank 0."""
    dist.send(rollout.contiguous(), dst=0)


def take_in(roles, steps, width):
    """Rank 0: one message from every actor."""
    parts = []
    for actor in roles.actors:
        part = torch.empty(steps, width)
        dist.recv(part, src=actor)
        parts.append(part)
    return torch.cat(parts)


def deal(roles, rows, per_learner, width):
    """Equal shares for all learners; only rank 0 holds ``rows``."""
    share = torch.empty(per_learner, width)
    if roles.chief:
        shares = [part.contiguous() for part in rows.split(per_learner)]
        dist.scatter(share, shares[: len(roles.learners)], src=0, group=roles.learner_group)
    else:
        dist.scatter(share, src=0, group=roles.learner_group)
    return share


def learn(roles, policy, opt, share, obs):
    x, action, reward = share[:, :obs], share[:, obs].long(), share[:, obs + 1]
    logp = policy(x).log_softmax(-1).gather(1, action.unsqueeze(1)).squeeze(1)
    stats = torch.stack([reward.sum(), torch.tensor(float(len(reward)))])
    dist.all_reduce(stats, group=roles.learner_group)
    mean = stats[0] / stats[1]
    opt.zero_grad()
    (-(reward - mean) * logp).mean().backward()
    for p in policy.parameters():
        dist.all_reduce(p.grad, group=roles.learner_group)
        p.grad /= len(roles.learners)
    opt.step()
    return mean


def publish(policy):
    with torch.no_grad():
        for p in policy.parameters():
            dist.broadcast(p, src=0)


def run(args, roles):
    rank = dist.get_rank()
    width = args.obs + 2
    per_learner = args.steps * len(roles.actors) // len(roles.learners)
    if per_learner == 0:
        raise SystemExit("too few steps for this many learners")
    torch.manual_seed(0)
    policy = Policy(args.obs, args.actions)
    opt = env = None
    if roles.learning:
        opt = torch.optim.Adam(policy.parameters(), lr=args.lr)
    else:
        env = Bandit(args.obs, args.actions, seed=rank)

    score = torch.zeros(1)
    for round_ in range(args.rounds):
        if roles.learning:
            rows = take_in(roles, args.steps, width) if roles.chief else None
            share = deal(roles, rows, per_learner, width)
            score[0] = learn(roles, policy, opt, share, args.obs)
        else:
            hand_in(roles, env.rollout(policy, args.steps))
        publish(policy)
        dist.broadcast(score, src=0)
        if roles.chief and round_ % 20 == 0:
            print(f"round {round_} reward {score.item():.3f}", flush=True)
        if score.item() > args.target:
            break
    return policy, score.item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--learners", type=int, default=2)
    p.add_argument("--rounds", type=int, default=300)
    p.add_argument("--steps", type=int, default=64)
    p.add_argument("--obs", type=int, default=6)
    p.add_argument("--actions", type=int, default=3)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--target", type=float, default=0.9)
    args = p.parse_args()

    dist.init_process_group("gloo")
    roles = Roles.build(args.learners)
    policy, score = run(args, roles)
    dist.barrier()
    dist.destroy_process_group()
    if roles.chief:
        path = tempfile.mktemp(suffix=".pt")
        torch.save(policy.state_dict(), path)
        print(f"reward {score:.3f}, weights in {path}")


if __name__ == "__main__":
    main()

"""Policy gradient with one learner rank and several actor ranks."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn

LEARNER = 0
HORIZON, ENVS, OBS, ACTIONS = 64, 16, 4, 2


class Corridor:
    """Batch of walkers; the reward is for being near the centre."""

    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.reset()

    def reset(self):
        self.pos = torch.rand(ENVS, generator=self.gen) * 4 - 2
        self.vel = torch.zeros(ENVS)
        self.age = torch.zeros(ENVS)
        return self.observe()

    def observe(self):
        return torch.stack([self.pos, self.vel, self.pos.abs(), self.age / HORIZON], 1)

    def step(self, action):
        push = action.float() * 2 - 1
        self.vel = 0.9 * self.vel + 0.1 * push + 0.02 * torch.randn(ENVS, generator=self.gen)
        self.pos = (self.pos + self.vel).clamp(-4, 4)
        self.age += 1
        return self.observe(), 1.0 - self.pos.abs() / 4


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(OBS, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.pi, self.v = nn.Linear(64, ACTIONS), nn.Linear(64, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.pi(h), self.v(h).squeeze(-1)


def pack(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@torch.no_grad()
def unpack(model, flat):
    for p, piece in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
        p.copy_(piece.view_as(p))


@torch.no_grad()
def rollout(env, policy, gen):
    """[HORIZON, ENVS, OBS + 2]: observation, action, reward."""
    obs, rows = env.reset(), []
    for _ in range(HORIZON):
        logits, _ = policy(obs)
        action = torch.multinomial(logits.softmax(-1), 1, generator=gen).squeeze(-1)
        following, reward = env.step(action)
        rows.append(torch.cat([obs, action[:, None].float(), reward[:, None]], 1))
        obs = following
    return torch.stack(rows)


def returns_of(reward, gamma=0.97):
    out, acc = torch.zeros_like(reward), torch.zeros(reward.shape[1:])
    for t in reversed(range(len(reward))):
        acc = reward[t] + gamma * acc
        out[t] = acc
    return out


def improve(policy, optimizer, batch):
    obs, action, reward = batch[..., :OBS], batch[..., OBS].long(), batch[..., OBS + 1]
    target = returns_of(reward)
    logits, value = policy(obs)
    logp = logits.log_softmax(-1).gather(-1, action.unsqueeze(-1)).squeeze(-1)
    advantage = (target - value).detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    entropy = -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean()
    loss = -(advantage * logp).mean() + 0.5 * (target - value).pow(2).mean() - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return reward.mean().item()


def learner(policy, rounds, goal):
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    blank = torch.zeros(HORIZON, ENVS, OBS + 2)
    for i in range(rounds):
        slots = [torch.empty_like(blank) for _ in range(dist.get_world_size())]
        dist.gather(blank, slots, dst=LEARNER)
        actors = [s for r, s in enumerate(slots) if r != LEARNER]
        score = improve(policy, optimizer, torch.cat(actors, dim=1))
        dist.broadcast(pack(policy), src=LEARNER)
        done = score > goal
        dist.broadcast(torch.tensor([int(done)]), src=LEARNER)
        if i % 20 == 0 or done:
            print(f"round {i}: mean reward {score:.4f}", flush=True)
        if done:
            break
    torch.save(policy.state_dict(), "policy.pt")


def actor(policy, rounds):
    rank = dist.get_rank()
    env, gen = Corridor(seed=rank), torch.Generator().manual_seed(rank)
    flat, stop = pack(policy), torch.zeros(1, dtype=torch.long)
    for _ in range(rounds):
        dist.gather(rollout(env, policy, gen), dst=LEARNER)
        dist.broadcast(flat, src=LEARNER)
        unpack(policy, flat)
        dist.broadcast(stop, src=LEARNER)
        if stop.item():
            break


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=10))
    if dist.get_world_size() < 2:
        raise SystemExit("one learner and at least one actor are needed")
    torch.set_num_threads(1)
    torch.manual_seed(int(os.environ.get("SEED", "0")))
    policy, rounds = Policy(), int(os.environ.get("ROUNDS", "400"))
    start = pack(policy)
    dist.broadcast(start, src=LEARNER)
    unpack(policy, start)
    if dist.get_rank() == LEARNER:
        learner(policy, rounds, goal=0.9)
    else:
        actor(policy, rounds)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

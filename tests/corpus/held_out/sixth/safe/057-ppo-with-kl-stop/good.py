import argparse
import os
import random
import time
from collections import deque

import gymnasium as gym
import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributions import Categorical


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--env", default="LunarLander-v2")
    ap.add_argument("--envs", type=int, default=8)
    ap.add_argument("--horizon", type=int, default=128)
    ap.add_argument("--total", type=int, default=5_000_000)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--minibatches", type=int, default=4)
    ap.add_argument("--lr", type=float, default=2.5e-4)
    ap.add_argument("--target-kl", type=float, default=0.02)
    ap.add_argument("--eval-every", type=int, default=20)
    ap.add_argument("--out", default="ppo")
    ap.add_argument("--seed", type=int, default=1)
    return ap.parse_args()


class ActorCritic(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, act))
        self.v = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def act(self, obs, action=None):
        d = Categorical(logits=self.pi(obs))
        action = d.sample() if action is None else action
        return action, d.log_prob(action), d.entropy(), self.v(obs).squeeze(-1)


class SharedNormaliser:
    def __init__(self, dim):
        self.mean, self.var, self.count = torch.zeros(dim), torch.ones(dim), 1e-4

    def __call__(self, x):
        return ((x - self.mean) / (self.var + 1e-8).sqrt()).clamp(-10, 10)

    def update(self, raw):
        raw = raw.reshape(-1, raw.size(-1)).double()
        pack = torch.cat([raw.sum(0), raw.pow(2).sum(0), torch.tensor([float(len(raw))], dtype=torch.float64)])
        dist.all_reduce(pack)
        dim, n = raw.size(1), pack[-1].item()
        mean = pack[:dim] / n
        var = (pack[dim:2 * dim] / n - mean ** 2).clamp(min=1e-8)
        delta, total = mean - self.mean.double(), self.count + n
        m2 = self.var.double() * self.count + var * n + delta ** 2 * self.count * n / total
        self.mean = (self.mean.double() + delta * n / total).float()
        self.var, self.count = (m2 / total).float(), total


def average_gradients(agent):
    grads = [p.grad for p in agent.parameters()]
    flat = torch.cat([g.flatten() for g in grads])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for g, part in zip(grads, flat.split([g.numel() for g in grads])):
        g.copy_(part.view_as(g))


def play(agent, norm, name, seed):
    env, total = gym.make(name), 0.0
    obs, _ = env.reset(seed=seed)
    over = False
    while not over:
        with torch.no_grad():
            a = agent.pi(norm(torch.tensor(obs, dtype=torch.float32))).argmax().item()
        obs, r, term, trunc, _ = env.step(a)
        total, over = total + r, term or trunc
    env.close()
    return total


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    random.seed(args.seed + rank)
    np.random.seed(args.seed + rank)
    torch.manual_seed(args.seed)
    envs = gym.vector.SyncVectorEnv([lambda: gym.make(args.env) for _ in range(args.envs)])
    obs_dim, n_act = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    agent = ActorCritic(obs_dim, n_act)
    for p in agent.parameters():
        dist.broadcast(p.data, 0)
    torch.manual_seed(args.seed + rank)
    optim = torch.optim.Adam(agent.parameters(), lr=args.lr, eps=1e-5)
    norm, returns = SharedNormaliser(obs_dim), deque(maxlen=50)
    T, N = args.horizon, args.envs
    updates = args.total // (T * N * world)
    raw, _ = envs.reset(seed=args.seed + 1000 * rank)
    raw, running, t0 = torch.tensor(raw, dtype=torch.float32), np.zeros(N), time.time()
    for update in range(1, updates + 1):
        raws, obs = torch.zeros(T, N, obs_dim), torch.zeros(T, N, obs_dim)
        acts, logps, vals = torch.zeros(T, N, dtype=torch.long), torch.zeros(T, N), torch.zeros(T, N)
        rews, dones = torch.zeros(T, N), torch.zeros(T, N)
        for t in range(T):
            raws[t], obs[t] = raw, norm(raw)
            with torch.no_grad():
                acts[t], logps[t], _, vals[t] = agent.act(obs[t])
            nxt, r, term, trunc, _ = envs.step(acts[t].numpy())
            running += r
            for i in np.flatnonzero(term | trunc):
                returns.append(running[i])
                running[i] = 0.0
            rews[t], dones[t] = torch.tensor(r), torch.tensor(term | trunc).float()
            raw = torch.tensor(nxt, dtype=torch.float32)
        with torch.no_grad():
            last = agent.v(norm(raw)).squeeze(-1)
        adv, gae = torch.zeros(T, N), torch.zeros(N)
        for t in reversed(range(T)):
            follow = last if t == T - 1 else vals[t + 1]
            gae = rews[t] + 0.99 * follow * (1 - dones[t]) - vals[t] + 0.99 * 0.95 * (1 - dones[t]) * gae
            adv[t] = gae
        ret = adv + vals
        norm.update(raws)
        data = [x.flatten(0, 1) for x in (obs, acts, logps, adv, ret)]
        kl = torch.zeros(())
        for epoch in range(args.epochs):
            for idx in torch.randperm(T * N).chunk(args.minibatches):
                o, a, lp, ad, rt = (x[idx] for x in data)
                _, new, ent, v = agent.act(o, a)
                ratio = (new - lp).exp()
                ad = (ad - ad.mean()) / (ad.std() + 1e-8)
                pg = torch.max(-ad * ratio, -ad * ratio.clamp(0.8, 1.2)).mean()
                loss = pg - 0.01 * ent.mean() + 0.5 * (v - rt).pow(2).mean()
                optim.zero_grad()
                loss.backward()
                average_gradients(agent)
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optim.step()
                kl = ((ratio - 1) - (new - lp)).mean().detach()
            dist.all_reduce(kl)
            kl /= world
            if kl.item() > args.target_kl:
                break
        stats = torch.tensor([sum(returns), float(len(returns))], dtype=torch.float64)
        dist.all_reduce(stats)
        if rank == 0:
            mean = stats[0].item() / max(stats[1].item(), 1.0)
            print(f"{update}/{updates} return {mean:.1f} kl {kl.item():.4f} {time.time() - t0:.0f}s", flush=True)
        if update % args.eval_every == 0:
            if rank == 0:
                os.makedirs(args.out, exist_ok=True)
                torch.save({"agent": agent.state_dict(), "mean": norm.mean, "var": norm.var}, f"{args.out}/{update}.pt")
                print("greedy", sum(play(agent, norm, args.env, s) for s in range(5)) / 5)
            dist.barrier()
    envs.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

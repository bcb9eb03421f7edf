import argparse
import os
import time

import torch
import torch.distributed as dist
import wandb
from torch.nn.parallel import DistributedDataParallel


class WandbLogger:
    def __init__(self, args):
        wandb.init(
            project=args.project,
            group=args.group,
            name=f"{args.group}-{time.strftime('%d%H%M')}",
            config=vars(args),
            mode="online" if dist.get_rank() == 0 else "disabled",
        )

    def log(self, values, step):
        wandb.log(values, step=step)

    def close(self):
        wandb.finish()


class Policy(torch.nn.Module):
    def __init__(self, obs=28, actions=9):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(obs, 128), torch.nn.Tanh())
        self.pi, self.value = torch.nn.Linear(128, actions), torch.nn.Linear(128, 1)

    def forward(self, obs):
        hidden = self.body(obs)
        return torch.distributions.Categorical(logits=self.pi(hidden)), self.value(hidden).squeeze(-1)


def update(policy, optimizer, device):
    obs = torch.randn(256, 28, device=device)
    pi, value = policy(obs)
    action = pi.sample()
    reward = (action == obs.argmax(1) % 9).float()
    loss = -(pi.log_prob(action) * (reward - value.detach())).mean() + (reward - value).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return reward.mean()


def train(args):
    local = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    logger = WandbLogger(args)
    policy = DistributedDataParallel(Policy().to(device))
    optimizer = torch.optim.Adam(policy.parameters(), lr=args.lr)
    for step in range(args.steps):
        reward = update(policy, optimizer, device)
        if step % 20 == 0:
            dist.all_reduce(reward)
            logger.log({"reward": reward.item() / dist.get_world_size()}, step)
    logger.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--project", default="driving")
    cli.add_argument("--group", default="nightly")
    cli.add_argument("--steps", type=int, default=2000)
    cli.add_argument("--lr", type=float, default=3e-4)
    train(cli.parse_args())

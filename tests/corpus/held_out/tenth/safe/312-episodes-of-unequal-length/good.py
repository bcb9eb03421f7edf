import random

import torch
import torch.distributed as dist


class Walk:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.x = 0

    def reset(self):
        self.x = 0
        return float(self.x)

    def step(self, action):
        self.x += action + self.rng.choice((-1, 1))
        return float(self.x), -abs(self.x), abs(self.x) > 5


def rollout(env, policy, limit):
    obs, done, rewards, logps = env.reset(), False, [], []
    while not done and len(rewards) < limit:
        prob = torch.sigmoid(policy * obs)
        act = int(torch.rand(()) < prob)
        logps.append(torch.log(prob if act else 1 - prob))
        obs, reward, done = env.step(2 * act - 1)
        rewards.append(reward)
    return sum(rewards), torch.stack(logps).sum()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    policy = torch.zeros((), requires_grad=True)
    env = Walk(seed=rank)
    for iteration in range(5):
        ret, logp = rollout(env, policy, limit=50)
        (grad,) = torch.autograd.grad(-ret * logp, policy)
        packed = torch.stack([grad, torch.tensor(float(ret))])
        dist.all_reduce(packed)
        with torch.no_grad():
            policy -= 1e-4 * packed[0] / world
        if rank == 0:
            print(iteration, packed[1].item() / world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

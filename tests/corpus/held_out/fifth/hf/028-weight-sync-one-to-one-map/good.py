"""Embodied RL: actors train the policy, rollout workers step the simulator."""
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass
class Placement:
    actors: int
    rollouts: int

    def rollout_global(self, index: int) -> int:
        return self.actors + index

    def check(self) -> None:
        assert self.actors + self.rollouts == dist.get_world_size()


class ActorWorker:
    def __init__(self, placement: Placement, policy: torch.nn.Module, actor_group):
        self.placement = placement
        self.rank = dist.get_rank()
        self.policy = policy
        self.group = actor_group
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=1e-4)
        self.targets = self._targets()

    def _targets(self):
        p = self.placement
        return [p.rollout_global(i) for i in range(self.rank, p.rollouts, p.actors)]

    def train(self, batch) -> float:
        loss = self.policy(batch).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        for p in self.policy.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=self.group)
        self.optimizer.step()
        return loss.item()

    def sync_weights(self) -> None:
        for tensor in self.policy.state_dict().values():
            for dst in self.targets:
                dist.send(tensor.contiguous(), dst=dst)


class RolloutWorker:
    def __init__(self, placement: Placement, policy: torch.nn.Module):
        self.placement = placement
        self.index = dist.get_rank() - placement.actors
        self.policy = policy
        self.source = self.index % placement.actors

    def sync_weights(self) -> None:
        for tensor in self.policy.state_dict().values():
            dist.recv(tensor, src=self.source)

    @torch.no_grad()
    def collect(self, env, steps: int):
        obs = env.reset()
        total = 0.0
        for _ in range(steps):
            obs, reward = env.step(self.policy(obs))
            total += reward
        return total


def main(make_policy, make_env, make_batch, actors: int, rollouts: int, epochs: int = 100):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    placement = Placement(actors, rollouts)
    placement.check()
    actor_group = dist.new_group(list(range(actors)))
    is_actor = dist.get_rank() < actors
    policy = make_policy().cuda()
    worker = ActorWorker(placement, policy, actor_group) if is_actor else RolloutWorker(placement, policy)
    for epoch in range(epochs):
        worker.sync_weights()
        result = worker.train(make_batch()) if is_actor else worker.collect(make_env(), 200)
        if dist.get_rank() in (0, actors):
            print(epoch, "loss" if is_actor else "return", result)
        dist.barrier()
    dist.destroy_process_group()

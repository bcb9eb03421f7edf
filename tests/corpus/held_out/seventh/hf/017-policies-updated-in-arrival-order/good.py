import queue

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Learner:
    def __init__(self, policies, lr):
        self.inbox = queue.Queue()
        self.models = {name: DDP(net) for name, net in policies.items()}
        self.opts = {
            name: torch.optim.Adam(m.parameters(), lr=lr) for name, m in self.models.items()
        }

    def receive(self):
        batches = {}
        while len(batches) < len(self.models):
            name, batch = self.inbox.get()
            batches[name] = batch
        return batches

    def update(self):
        batches = self.receive()
        for name in sorted(self.models):
            batch = batches[name]
            logp, value = self.models[name](batch["obs"])
            loss = -(logp * batch["adv"]).mean() + (value - batch["ret"]).pow(2).mean()
            loss.backward()
            self.opts[name].step()
            self.opts[name].zero_grad()


def run(policies, start_actors, iterations):
    dist.init_process_group("gloo")
    learner = Learner(policies, lr=3e-4)
    start_actors(learner.inbox)
    for _ in range(iterations):
        learner.update()
    dist.destroy_process_group()

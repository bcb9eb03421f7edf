import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def run_once(fn):
    box = [fn() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def setup_torch_distributed():
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if backend == "nccl":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend, timeout=timedelta(minutes=2))


class AgentTrainer:
    def __init__(self, run_name):
        self.run_name = run_name
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.policy = DDP(torch.nn.Linear(24, 5).to(self.device))
        self.opt = torch.optim.Adam(self.policy.parameters(), lr=3e-4)

    def rollout(self):
        return torch.randn(128, 24, device=self.device)

    def train(self, updates):
        for update in range(updates):
            obs = self.rollout()
            loss = self.policy(obs).logsumexp(1).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if update % 10 == 0:
                dist.barrier()


def main():
    setup_torch_distributed()
    name = run_once(lambda: f"run-{int(time.time())}")
    AgentTrainer(name).train(100)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

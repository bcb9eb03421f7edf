import logging
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

logger = logging.getLogger("emulator")


class Distributed:
    """Own the process group for the time of a `with` block."""

    _instance = None

    def __init__(self):
        self.local_rank = int(os.environ.get("LOCAL_RANK", 0))

    def __enter__(self):
        torch.cuda.set_device(self.local_rank)
        dist.init_process_group("nccl")
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.device = torch.device("cuda", self.local_rank)
        Distributed._instance = self
        return self

    def __exit__(self, exc_type, exc, tb):
        Distributed._instance = None
        self.shutdown()
        return False

    def shutdown(self):
        logger.debug("rank %d leaves", self.rank)
        dist.barrier()
        dist.destroy_process_group()

    def reduce_mean(self, t):
        dist.all_reduce(t)
        return t / self.world_size

    def wrap(self, module):
        return DDP(module.to(self.device), device_ids=[self.local_rank])


class Stepper(torch.nn.Module):
    def __init__(self, variables=39, hidden=128):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(variables, hidden, 3, padding=1), torch.nn.GELU(), torch.nn.Conv2d(hidden, variables, 3, padding=1)
        )

    def forward(self, x):
        return x + self.net(x)


def run(config, make_loader):
    with Distributed() as d:
        model = d.wrap(Stepper())
        optim = torch.optim.Adam(model.parameters(), lr=config["lr"])
        loader = make_loader(d.rank, d.world_size)
        for epoch in range(config["epochs"]):
            loader.sampler.set_epoch(epoch)
            running = torch.zeros((), device=d.device)
            for now, later in loader:
                loss = (model(now.to(d.device)) - later.to(d.device)).pow(2).mean()
                optim.zero_grad()
                loss.backward()
                optim.step()
                running += loss.detach()
            mean = d.reduce_mean(running / max(len(loader), 1))
            if d.rank == 0:
                logger.info("epoch %d loss %.4f", epoch, mean.item())
                torch.save(model.module.state_dict(), config["out"])

import logging
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

LOG = logging.getLogger(__name__)


class Exporter:
    """Writes snapshots in a thread pool and keeps what went wrong."""

    def __init__(self):
        self.pool = ThreadPoolExecutor(max_workers=1)
        self.futures = []

    def submit(self, path, state):
        snapshot = {k: v.detach().cpu().clone() for k, v in state.items()}
        self.futures.append(self.pool.submit(torch.save, snapshot, path))

    def result(self):
        self.pool.shutdown(wait=True)
        for future in self.futures:
            future.result()


def train(model, batches, exporter):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, batch in enumerate(batches):
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 100 == 0:
            exporter.submit(f"snapshot-{step}.pt", model.module.state_dict())


def main(model, batches):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    exporter = Exporter()
    train(DDP(model), batches, exporter)
    if rank == 0:
        exporter.result()
    LOG.info("rank %d is done", rank)
    dist.barrier()
    dist.destroy_process_group()

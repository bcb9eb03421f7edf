"""Train on with a bad batch skipped everywhere, give up after many in a row."""
import json
import logging
import os
from collections import deque
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

LOG = logging.getLogger(__name__)


class TooManyBadSteps(RuntimeError):
    pass


class JsonRows(Dataset):
    def __init__(self, path):
        with open(path) as f:
            self.rows = [json.loads(line) for line in f]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return torch.tensor(row["x"], dtype=torch.float32), torch.tensor(row["y"], dtype=torch.float32)


class SpikeGuard:
    """Judges a step by the losses of all ranks, so every rank gets the same verdict."""

    def __init__(self, device, window=100, factor=5.0, max_bad=20):
        self.device, self.factor, self.max_bad = device, factor, max_bad
        self.recent = deque(maxlen=window)
        self.bad_in_row = 0

    def accept(self, loss):
        fine = torch.isfinite(loss.detach()).to(torch.float32)
        dist.all_reduce(fine, op=dist.ReduceOp.MIN)
        if fine.item() < 1:
            return self._reject("not finite")
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        mean = mean.item() / dist.get_world_size()
        if len(self.recent) == self.recent.maxlen and mean > self.factor * sorted(self.recent)[len(self.recent) // 2]:
            return self._reject(f"spike to {mean:.3f}")
        self.recent.append(mean)
        self.bad_in_row = 0
        return True

    def _reject(self, why):
        self.bad_in_row += 1
        LOG.warning("step skipped: %s", why)
        if self.bad_in_row >= self.max_bad:
            raise TooManyBadSteps(f"{self.bad_in_row} steps in a row")
        return False


def fit(model, loader, sampler, optimizer, guard, epochs, device):
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        used = 0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            loss = nn.functional.mse_loss(model(x).squeeze(-1), y)
            if not guard.accept(loss):
                # drop the graph of this forward; DDP gets a fresh one next time
                del loss
                continue
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            used += 1
        LOG.info("epoch %d: %d of %d steps used", epoch, used, len(loader))
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), "regressor.pt")


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    logging.basicConfig(level=logging.INFO if dist.get_rank() == 0 else logging.CRITICAL)
    torch.manual_seed(2)

    data = JsonRows(os.environ["TRAIN_FILE"])
    sampler = DistributedSampler(data, seed=3)
    loader = DataLoader(data, batch_size=64, sampler=sampler, num_workers=2)
    width = data[0][0].numel()
    net = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    model = DDP(net.to(device), device_ids=[local])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = SpikeGuard(device)
    try:
        fit(model, loader, sampler, optimizer, guard, 20, device)
    except TooManyBadSteps as err:
        # raised on all ranks in the same step
        LOG.error("stopped: %s", err)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

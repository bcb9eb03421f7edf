"""Checkpoint manager for a DDP run on a shared (NFS) directory."""
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class CheckpointManager:
    def __init__(self, directory):
        self.dir = Path(directory)
        self.rank = dist.get_rank()

    def save(self, step, model, optimizer):
        if self.rank == 0:
            self.dir.mkdir(parents=True, exist_ok=True)
            tmp = self.dir / "train_state.tmp"
            torch.save(
                {"step": step, "model": model.module.state_dict(), "optim": optimizer.state_dict()}, tmp
            )
            tmp.replace(self.dir / "train_state.pt")
        dist.barrier()

    def load(self, model, optimizer):
        """Return the step to start from (0 when there is nothing to resume)."""
        path = self.dir / "train_state.pt"
        found = [path.exists() if self.rank == 0 else None]
        dist.broadcast_object_list(found, src=0)
        if not found[0]:
            return 0
        payload = [None]
        if self.rank == 0:
            payload[0] = torch.load(path, map_location="cpu")
        dist.broadcast_object_list(payload, src=0)
        state = payload[0]
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optim"])
        return state["step"]


def next_batch(rank, step, device):
    g = torch.Generator().manual_seed(step * 1009 + rank)
    x = torch.randn(32, 64, generator=g)
    return x.to(device), x.sum(dim=1, keepdim=True).to(device)


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    model = DDP(net.to(device), device_ids=[local_rank])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    manager = CheckpointManager(os.environ.get("CKPT_DIR", "/scratch/run1"))
    start = manager.load(model, optimizer)
    for step in range(start, 5000):
        x, y = next_batch(dist.get_rank(), step, device)
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 500 == 0:
            manager.save(step + 1, model, optimizer)
            if dist.get_rank() == 0:
                print(f"saved step {step + 1}, loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

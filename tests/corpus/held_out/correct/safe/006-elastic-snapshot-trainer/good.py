"""GPT trainer for torchrun: it picks up from its last snapshot after a restart."""
import os
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Dict, Optional

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


@dataclass
class TrainerConfig:
    max_epochs: int = 10
    batch_size: int = 32
    snapshot_path: str = "snapshot.pt"
    save_every: int = 1
    grad_norm_clip: float = 1.0
    use_amp: bool = True


@dataclass
class Snapshot:
    model_state: Dict[str, torch.Tensor]
    optimizer_state: Dict[str, Any]
    finished_epoch: int


class CopyTask(Dataset):
    def __init__(self, n=8192, length=24, seed=3):
        self.rows = torch.randint(0, 64, (n, length), generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i, :-1], self.rows[i, 1:]


class Trainer:
    def __init__(self, cfg: TrainerConfig, model, optimizer, train_set, test_set: Optional[Dataset] = None):
        self.cfg = cfg
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.global_rank = int(os.environ["RANK"])
        self.train_loader = self._loader(train_set)
        self.test_loader = self._loader(test_set) if test_set else None
        self.epochs_run = 0
        self.model = model.to(self.local_rank)
        self.optimizer = optimizer
        self.scaler = torch.amp.GradScaler("cuda", enabled=cfg.use_amp)
        self._load_snapshot()
        self.model = DDP(self.model, device_ids=[self.local_rank])

    def _loader(self, data):
        return DataLoader(data, batch_size=self.cfg.batch_size, pin_memory=True, shuffle=False,
                          sampler=DistributedSampler(data))

    def _load_snapshot(self):
        # The path is on storage that every node mounts; nobody writes it before training begins.
        dist.barrier(device_ids=[self.local_rank])
        present = torch.tensor([int(os.path.exists(self.cfg.snapshot_path))], device=self.local_rank)
        dist.all_reduce(present, op=dist.ReduceOp.MIN)
        if not present.item():
            if self.global_rank == 0:
                print("no snapshot, training from scratch")
            return
        data = torch.load(self.cfg.snapshot_path, map_location=f"cuda:{self.local_rank}", weights_only=False)
        snapshot = Snapshot(**data)
        self.model.load_state_dict(snapshot.model_state)
        self.optimizer.load_state_dict(snapshot.optimizer_state)
        self.epochs_run = snapshot.finished_epoch
        print(f"[rank {self.global_rank}] resuming at epoch {self.epochs_run}")

    def _save_snapshot(self, epoch):
        snapshot = Snapshot(self.model.module.state_dict(), self.optimizer.state_dict(), epoch)
        temporary = self.cfg.snapshot_path + ".part"
        torch.save(asdict(snapshot), temporary)
        os.replace(temporary, self.cfg.snapshot_path)

    def _run_batch(self, source, targets, train=True):
        with torch.set_grad_enabled(train), torch.autocast("cuda", torch.float16, enabled=self.cfg.use_amp):
            logits = self.model(source)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        if train:
            self.optimizer.zero_grad(set_to_none=True)
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_norm_clip)
            self.scaler.step(self.optimizer)
            self.scaler.update()
        return loss.item()

    def _run_epoch(self, epoch, loader, train=True):
        loader.sampler.set_epoch(epoch)
        name = "train" if train else "eval"
        for it, (source, targets) in enumerate(loader):
            value = self._run_batch(source.to(self.local_rank), targets.to(self.local_rank), train)
            if it % 100 == 0:
                print(f"[rank {self.global_rank}] epoch {epoch} iter {it} {name} loss {value:.5f}")

    def train(self):
        for epoch in range(self.epochs_run, self.cfg.max_epochs):
            self.model.train()
            self._run_epoch(epoch, self.train_loader, train=True)
            if self.global_rank == 0 and (epoch + 1) % self.cfg.save_every == 0:
                self._save_snapshot(epoch + 1)
            if self.test_loader:
                self.model.eval()
                self._run_epoch(epoch, self.test_loader, train=False)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    torch.manual_seed(11)
    model = nn.Sequential(nn.Embedding(64, 128), nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 64))
    model = model.to(int(os.environ["LOCAL_RANK"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    trainer = Trainer(TrainerConfig(), model, optimizer, CopyTask(), CopyTask(n=512, seed=4))
    trainer.train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

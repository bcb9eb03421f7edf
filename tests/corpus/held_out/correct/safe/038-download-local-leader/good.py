"""Node-local data staging before DDP training."""
import contextlib
import hashlib
import os
import shutil
import tarfile
import urllib.request
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class StagingError(RuntimeError):
    pass


class Rig:
    def __init__(self):
        self.rank = int(os.environ["RANK"])
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.world = int(os.environ["WORLD_SIZE"])
        self.device = torch.device("cuda", self.local_rank)

    @property
    def leads_node(self):
        return self.local_rank == 0

    def everyone_fine(self, fine):
        t = torch.tensor([1 if fine else 0], device=self.device)
        dist.all_reduce(t, op=dist.ReduceOp.MIN)
        return t.item() == 1

    @contextlib.contextmanager
    def session(self):
        torch.cuda.set_device(self.device)
        dist.init_process_group("nccl", timeout=timedelta(hours=1))
        try:
            yield self
        finally:
            dist.destroy_process_group()


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def download(url, target, expected):
    partial = target.with_suffix(".part")
    with urllib.request.urlopen(url, timeout=60) as answer, open(partial, "wb") as f:
        shutil.copyfileobj(answer, f)
    if expected and sha256(partial) != expected:
        partial.unlink()
        raise StagingError(f"checksum of {url}")
    partial.replace(target)


def stage(rig, url, folder, expected=None):
    """Fetch and unpack once per node, with all ranks told how it went."""
    done = folder / ".unpacked"
    problem = None
    if rig.leads_node and not done.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            archive = folder / "archive.tar"
            download(url, archive, expected)
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
            done.touch()
        except (OSError, StagingError, tarfile.TarError) as err:
            problem = err
    dist.barrier(device_ids=[rig.local_rank])
    if not rig.everyone_fine(problem is None and done.exists()):
        raise StagingError(f"rank {rig.rank}: data not staged on all nodes ({problem})")


class Clips(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.rglob("*.pt"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        blob = torch.load(self.files[i])
        return blob["wave"][:16000], blob["label"]


def same_file_count(rig, n):
    lo = torch.tensor([n, -n], device=rig.device)
    dist.all_reduce(lo, op=dist.ReduceOp.MIN)
    return lo[0].item() == -lo[1].item()


def train(rig, data, epochs=10):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 32, sampler=sampler, num_workers=4, pin_memory=True)
    net = nn.Sequential(nn.Unflatten(1, (1, 16000)), nn.Conv1d(1, 64, 80, 16), nn.ReLU(), nn.Conv1d(64, 64, 3, 2),
                        nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 35)).to(rig.device)
    model = DistributedDataParallel(net, device_ids=[rig.local_rank])
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for wave, label in loader:
            loss = nn.functional.cross_entropy(model(wave.to(rig.device)), label.to(rig.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rig.rank == 0:
            print(f"epoch {epoch} last loss {loss.item():.4f}")
            torch.save(net.state_dict(), "clips.pt")


def main():
    url = os.environ["DATA_URL"]
    folder = Path(os.environ.get("SCRATCH", "/tmp")) / "clips"
    with Rig().session() as rig:
        stage(rig, url, folder, os.environ.get("DATA_SHA256"))
        data = Clips(folder)
        if not same_file_count(rig, len(data)):
            raise StagingError("the nodes hold unlike numbers of files")
        train(rig, data)


if __name__ == "__main__":
    main()

import datetime
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class EnergyTrainer:
    def __init__(self, cfg, model, dataset):
        self.cfg = cfg
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(self.device)
        box = [datetime.datetime.now().strftime("%Y-%m-%d-%H-%M-%S")]
        dist.broadcast_object_list(box, src=0, device=self.device)
        stamp = box[0]
        self.run_dir = Path(cfg["root"]) / f"{stamp}-{cfg['name']}"
        self.pred_dir = self.run_dir / "results"
        self.pred_dir.mkdir(parents=True, exist_ok=True)
        self.model = DistributedDataParallel(model.to(self.device), device_ids=[self.device.index])
        self.sampler = DistributedSampler(dataset, shuffle=False)
        self.loader = DataLoader(dataset, batch_size=cfg["batch_size"], sampler=self.sampler)

    @torch.no_grad()
    def predict(self):
        self.model.eval()
        ids, energies = [], []
        for batch in self.loader:
            out = self.model.module(batch["x"].to(self.device))
            ids.append(batch["sid"].numpy())
            energies.append(out.squeeze(-1).cpu().numpy())
        np.savez(self.pred_dir / f"part_{self.rank}.npz", ids=np.concatenate(ids), energy=np.concatenate(energies))
        dist.barrier()
        if self.rank == 0:
            self.merge()
        dist.barrier()

    def merge(self):
        parts = [np.load(self.pred_dir / f"part_{r}.npz") for r in range(self.world)]
        ids = np.concatenate([p["ids"] for p in parts])
        energy = np.concatenate([p["energy"] for p in parts])
        _, keep = np.unique(ids, return_index=True)
        np.savez(self.run_dir / "predictions.npz", ids=ids[keep], energy=energy[keep])


class Structures(torch.utils.data.Dataset):
    def __len__(self):
        return 10001

    def __getitem__(self, i):
        return {"x": torch.randn(32), "sid": i}


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    cfg = {"root": "runs", "name": "s2ef", "batch_size": 64}
    EnergyTrainer(cfg, torch.nn.Linear(32, 1), Structures()).predict()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import json
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist


class ClassWeights:
    """Inverse-frequency weights, read by rank 0 and given to all."""

    def __init__(self, path, num_classes):
        self.path = Path(path)
        self.num_classes = num_classes

    def _read(self):
        counts = json.loads(self.path.read_text())
        freq = np.array([counts.get(str(c), 1) for c in range(self.num_classes)])
        return freq.sum() / (self.num_classes * freq)

    def tensor(self, device):
        if dist.get_rank() == 0:
            weights = torch.from_numpy(self._read()).to(device, torch.float32)
        else:
            weights = torch.empty(self.num_classes, device=device)
        dist.broadcast(weights, src=0)
        return weights


def main():
    dist.init_process_group("nccl")
    device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    weights = ClassWeights("counts.json", 1000).tensor(device).float()
    criterion = torch.nn.CrossEntropyLoss(weight=weights)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Linear(2048, 1000).to(device), device_ids=[device.index])
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(1000):
        x = torch.randn(64, 2048, device=device)
        y = torch.randint(0, 1000, (64,), device=device)
        opt.zero_grad(set_to_none=True)
        criterion(model(x), y).backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

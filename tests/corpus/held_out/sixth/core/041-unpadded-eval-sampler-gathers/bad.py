import math
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, Sampler


class DistributedEvalSampler(Sampler):
    """Like DistributedSampler, but no sample is seen twice."""

    def __init__(self, dataset, num_replicas, rank):
        self.n, self.num_replicas, self.rank = len(dataset), num_replicas, rank

    def __iter__(self):
        return iter(range(self.rank, self.n, self.num_replicas))

    def __len__(self):
        return len(range(self.rank, self.n, self.num_replicas))


class Pairs(Dataset):
    def __init__(self, file):
        self.blur, self.sharp = torch.load(file, mmap=True)

    def __len__(self):
        return len(self.blur)

    def __getitem__(self, i):
        return self.blur[i].float(), self.sharp[i].float()


def psnr(a, b, peak=255.0):
    mse = (a.clamp(0, peak) - b).pow(2).mean().item()
    return 10 * math.log10(peak**2 / max(mse, 1e-10))


class Evaluator:
    def __init__(self, model, dataset):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        self.model = model.to(self.device).eval()
        sampler = DistributedEvalSampler(dataset, self.world, self.rank)
        self.loader = DataLoader(dataset, batch_size=1, sampler=sampler, num_workers=2)

    def _sum(self, *values):
        t = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(t)
        return t.tolist()

    @torch.no_grad()
    def run(self):
        total, count = 0.0, 0
        for blur, sharp in self.loader:
            out = self.model(blur.to(self.device)).cpu()
            s, c = self._sum(psnr(out, sharp), 1)
            total += s
            count += c
        return total / max(count, 1)


def main(load_model, file="gopro_test.pt"):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    score = Evaluator(load_model(), Pairs(file)).run()
    if dist.get_rank() == 0:
        print(f"PSNR {score:.3f} dB")
    dist.destroy_process_group()

"""DDP with ZeroRedundancyOptimizer; the optimizer state is consolidated for the save."""
import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def toy_images(gen, n):
    label = torch.randint(0, 10, (n,), generator=gen)
    base = torch.linspace(0, 1, 10)[label].view(n, 1, 1, 1)
    return base + 0.3 * torch.randn(n, 3, 32, 32, generator=gen), label


class Patchy(nn.Module):
    def __init__(self, d=384, depth=8, patch=4):
        super().__init__()
        self.patch = nn.Conv2d(3, d, patch, patch)
        self.pos = nn.Parameter(torch.zeros(1, (32 // patch) ** 2, d))
        layer = nn.TransformerEncoderLayer(d, 6, 4 * d, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(d, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        return self.head(self.body(x).mean(1))


class Session:
    def __init__(self, args, device):
        self.args, self.device = args, device
        self.rank = dist.get_rank()
        self.net = Patchy().to(device)
        self.model = DDP(self.net, device_ids=[device.index], gradient_as_bucket_view=True)
        self.optimizer = ZeroRedundancyOptimizer(self.model.parameters(), optimizer_class=torch.optim.AdamW,
                                                 lr=args.lr, weight_decay=0.05)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, args.steps)
        self.step = 0

    def save(self, path):
        self.optimizer.consolidate_state_dict(to=0)
        if self.rank == 0:
            blob = {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "scheduler": self.scheduler.state_dict(), "step": self.step}
            torch.save(blob, path + ".new")
            os.replace(path + ".new", path)
        dist.barrier()

    def load(self, path):
        blob = torch.load(path, map_location=self.device, weights_only=False)
        self.net.load_state_dict(blob["net"])
        self.optimizer.load_state_dict(blob["optimizer"])
        self.scheduler.load_state_dict(blob["scheduler"])
        self.step = blob["step"]
        dist.barrier()

    def train(self, gen):
        window = torch.zeros((), device=self.device)
        while self.step < self.args.steps:
            x, y = toy_images(gen, self.args.batch)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            self.optimizer.zero_grad()
            self.step += 1
            window += loss.detach()
            if self.step % 50 == 0:
                dist.reduce(window, dst=0)
                if self.rank == 0:
                    print(f"step {self.step}: {window.item() / 50 / dist.get_world_size():.4f}")
                window.zero_()
            if self.step % self.args.save_every == 0 or self.step == self.args.steps:
                self.save(self.args.path)


def state_sizes(optimizer, device):
    """Elements of optimizer state on each rank: shows how the shards are balanced."""
    local = sum(t.numel() for s in optimizer.optim.state.values() for t in s.values() if torch.is_tensor(t))
    mine = torch.tensor([local], device=device)
    slots = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(slots, mine)
    return [int(s) for s in slots]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lr", type=float, default=5e-4)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--steps", type=int, default=2000)
    ap.add_argument("--save-every", type=int, default=500)
    ap.add_argument("--path", default="zero1.pt")
    ap.add_argument("--resume", action="store_true")
    args = ap.parse_args()
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=15))
    torch.manual_seed(0)
    session = Session(args, device)
    if args.resume:
        session.load(args.path)
    session.train(torch.Generator().manual_seed(1000 * session.step + session.rank))
    sizes = state_sizes(session.optimizer, device)
    if session.rank == 0:
        print("optimizer elements by rank:", sizes)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

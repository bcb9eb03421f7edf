"""Language model pre-training with Lightning Fabric and FSDP."""
import math
import time
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.fabric.strategies import FSDPStrategy
from torch.utils.data import DataLoader, Dataset


@dataclass
class Settings:
    width: int = 512
    depth: int = 8
    heads: int = 8
    vocab: int = 4096
    context: int = 512
    micro_batch: int = 8
    accumulate: int = 4
    max_steps: int = 5000
    warmup: int = 200
    lr: float = 4e-4
    eval_interval: int = 250
    eval_batches: int = 20
    out_dir: Path = Path("fabric-out")


class Tokens(Dataset):
    def __init__(self, path, context):
        self.data = torch.load(path, mmap=True)
        self.context = context

    def __len__(self):
        return (len(self.data) - 1) // self.context

    def __getitem__(self, i):
        piece = self.data[i * self.context:(i + 1) * self.context + 1].long()
        return piece[:-1], piece[1:]


class Decoder(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.emb = nn.Embedding(s.vocab, s.width)
        self.pos = nn.Embedding(s.context, s.width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(s.width, s.heads, 4 * s.width, batch_first=True, norm_first=True)
            for _ in range(s.depth))
        self.out = nn.Linear(s.width, s.vocab)

    def forward(self, ids):
        t = ids.shape[1]
        h = self.emb(ids) + self.pos(torch.arange(t, device=ids.device))
        mask = nn.Transformer.generate_square_subsequent_mask(t, device=ids.device)
        for layer in self.layers:
            h = layer(h, src_mask=mask, is_causal=True)
        return self.out(h)


def prepare_tokens(folder: Path, s: Settings):
    for name, n in (("train", 20_000_000), ("val", 400_000)):
        target = folder / f"{name}.pt"
        if not target.exists():
            torch.save(torch.randint(0, s.vocab, (n,), dtype=torch.int16), target)


def lr_at(step, s):
    if step < s.warmup:
        return s.lr * (step + 1) / s.warmup
    return 0.5 * s.lr * (1 + math.cos(math.pi * (step - s.warmup) / max(1, s.max_steps - s.warmup)))


@torch.no_grad()
def validate(fabric, model, loader, s):
    model.eval()
    losses = []
    for i, (x, y) in enumerate(loader):
        if i >= s.eval_batches:
            break
        losses.append(F.cross_entropy(model(x).flatten(0, 1), y.flatten()))
    model.train()
    return fabric.all_reduce(torch.stack(losses).mean(), reduce_op="mean")


def train(fabric, state, train_loader, val_loader, s):
    model, optimizer = state["model"], state["optimizer"]
    micro, epoch, t0 = 0, 0, time.perf_counter()
    while state["step"] < s.max_steps:
        if hasattr(train_loader.sampler, "set_epoch"):
            train_loader.sampler.set_epoch(epoch)
        for x, y in train_loader:
            micro += 1
            accumulating = micro % s.accumulate != 0
            with fabric.no_backward_sync(model, enabled=accumulating):
                loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
                fabric.backward(loss / s.accumulate)
            if accumulating:
                continue
            for g in optimizer.param_groups:
                g["lr"] = lr_at(state["step"], s)
            fabric.clip_gradients(model, optimizer, max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
            state["step"] += 1
            if state["step"] % 20 == 0:
                fabric.print(f"step {state['step']} loss {loss.item():.3f} {time.perf_counter() - t0:.0f}s")
            if state["step"] % s.eval_interval == 0:
                val = validate(fabric, model, val_loader, s)
                fabric.print(f"step {state['step']} val {val.item():.3f}")
                fabric.save(s.out_dir / f"step-{state['step']:06d}.ckpt", state)
            if state["step"] >= s.max_steps:
                break
        epoch += 1


def main():
    s = Settings()
    strategy = FSDPStrategy(auto_wrap_policy={nn.TransformerEncoderLayer}, state_dict_type="full",
                            timeout=timedelta(minutes=30))
    fabric = L.Fabric(accelerator="cuda", devices="auto", strategy=strategy, precision="bf16-mixed")
    fabric.launch()
    fabric.seed_everything(99)
    with fabric.rank_zero_first():
        s.out_dir.mkdir(parents=True, exist_ok=True)
        prepare_tokens(s.out_dir, s)

    with fabric.init_module():
        model = Decoder(s)
    model = fabric.setup(model)
    optimizer = fabric.setup_optimizers(torch.optim.AdamW(model.parameters(), lr=s.lr))
    train_loader, val_loader = fabric.setup_dataloaders(
        DataLoader(Tokens(s.out_dir / "train.pt", s.context), s.micro_batch, shuffle=True, drop_last=True),
        DataLoader(Tokens(s.out_dir / "val.pt", s.context), s.micro_batch, drop_last=True))
    state = {"model": model, "optimizer": optimizer, "step": 0,
             "settings": {k: str(v) for k, v in asdict(s).items()}}
    train(fabric, state, train_loader, val_loader, s)
    fabric.save(s.out_dir / "final.ckpt", state)
    fabric.barrier()
    fabric.print("done")


if __name__ == "__main__":
    main()

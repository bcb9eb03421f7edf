"""Character-level GPT pre-training, single GPU or DDP through torchrun."""
import math
import os
import time
from contextlib import nullcontext
from datetime import timedelta

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

out_dir = "out"
eval_interval = 500
eval_iters = 50
log_interval = 10
max_iters = 20000
warmup_iters = 200
learning_rate = 6e-4
min_lr = 6e-5
batch_size = 12
block_size = 256
gradient_accumulation_steps = 40
grad_clip = 1.0

ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    init_process_group(backend="nccl", timeout=timedelta(minutes=20))
    ddp_rank = int(os.environ["RANK"])
    ddp_local_rank = int(os.environ["LOCAL_RANK"])
    ddp_world_size = int(os.environ["WORLD_SIZE"])
    device = f"cuda:{ddp_local_rank}"
    torch.cuda.set_device(device)
    master_process = ddp_rank == 0
    seed_offset = ddp_rank
    assert gradient_accumulation_steps % ddp_world_size == 0
    gradient_accumulation_steps //= ddp_world_size
else:
    master_process = True
    seed_offset = 0
    ddp_world_size = 1
    device = "cuda" if torch.cuda.is_available() else "cpu"

if master_process:
    os.makedirs(out_dir, exist_ok=True)
torch.manual_seed(1337 + seed_offset)
ctx = torch.autocast("cuda", dtype=torch.bfloat16) if "cuda" in device else nullcontext()


class TinyGPT(nn.Module):
    def __init__(self, vocab=256, width=384, depth=6, heads=6):
        super().__init__()
        self.tok = nn.Embedding(vocab, width)
        self.pos = nn.Parameter(torch.zeros(1, block_size, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, idx, targets):
        t = idx.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(t, device=idx.device)
        h = self.blocks(self.tok(idx) + self.pos[:, :t], mask=mask, is_causal=True)
        logits = self.head(h)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_batch(split):
    data = np.memmap(os.path.join("data", f"{split}.bin"), dtype=np.uint8, mode="r")
    ix = torch.randint(len(data) - block_size - 1, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i:i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + block_size].astype(np.int64)) for i in ix])
    return x.to(device), y.to(device)


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr + 0.5 * (1 + math.cos(math.pi * min(1.0, ratio))) * (learning_rate - min_lr)


raw_model = TinyGPT().to(device)
model = DDP(raw_model, device_ids=[ddp_local_rank]) if ddp else raw_model
optimizer = torch.optim.AdamW(raw_model.parameters(), lr=learning_rate, betas=(0.9, 0.95))


@torch.no_grad()
def estimate_loss():
    """Plain local forwards of the unwrapped network; only the master calls this."""
    result = {}
    raw_model.eval()
    for split in ("train", "val"):
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            x, y = get_batch(split)
            with ctx:
                _, loss = raw_model(x, y)
            losses[k] = loss.item()
        result[split] = losses.mean().item()
    raw_model.train()
    return result


best_val_loss = float("inf")
x, y = get_batch("train")
t0 = time.time()
for iter_num in range(max_iters + 1):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(iter_num)

    if iter_num % eval_interval == 0 and master_process:
        losses = estimate_loss()
        print(f"step {iter_num}: train {losses['train']:.4f}, val {losses['val']:.4f}")
        if losses["val"] < best_val_loss:
            best_val_loss = losses["val"]
            if iter_num > 0:
                state = {"model": raw_model.state_dict(), "optimizer": optimizer.state_dict(),
                         "iter_num": iter_num, "best_val_loss": best_val_loss}
                torch.save(state, os.path.join(out_dir, "ckpt.pt"))

    for micro_step in range(gradient_accumulation_steps):
        if ddp:
            model.require_backward_grad_sync = micro_step == gradient_accumulation_steps - 1
        with ctx:
            _, loss = model(x, y)
            loss = loss / gradient_accumulation_steps
        x, y = get_batch("train")
        loss.backward()
    if grad_clip:
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)

    dt, t0 = time.time() - t0, time.time()
    if iter_num % log_interval == 0 and master_process:
        print(f"iter {iter_num}: loss {loss.item() * gradient_accumulation_steps:.4f}, {dt * 1000:.1f}ms")

if ddp:
    destroy_process_group()

"""Everything at the top level; one process or many."""

import math
import os
import sys

import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

# -----------------------------------------------------------------------------
out_dir = sys.argv[1]
eval_interval = 2
max_iters = 6
gradient_accumulation_steps = 2
# -----------------------------------------------------------------------------

ddp = int(os.environ.get("RANK", -1)) != -1  # is this a ddp run?
if ddp:
    init_process_group(backend="gloo")
    master_process = int(os.environ["RANK"]) == 0
else:
    master_process = True

model = torch.nn.Linear(8, 1)
if ddp:
    model = DDP(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
raw_model = model.module if ddp else model
best_loss = math.inf
iter_num = 0

while True:
    for _micro_step in range(gradient_accumulation_steps):
        loss = model(torch.randn(4, 8)).square().mean() / gradient_accumulation_steps
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)

    # write checkpoints
    if iter_num % eval_interval == 0 and master_process:
        print(f"step {iter_num}: loss {loss.item():.4f}", flush=True)
        folder = "no space left" if os.environ.get("FAIL_AT") == str(iter_num) else "."
        torch.save(raw_model.state_dict(), os.path.join(out_dir, folder, "ckpt.pt"))
    iter_num += 1

    # termination conditions
    if iter_num > max_iters:
        break

if ddp:
    destroy_process_group()

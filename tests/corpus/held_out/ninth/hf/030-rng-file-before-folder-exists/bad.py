import os
import random
import numpy as np
import torch
import torch.distributed as dist


def random_states():
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "cpu": torch.random.get_rng_state(),
        "cuda": torch.cuda.random.get_rng_state_all(),
    }


def save_checkpoint(model, opt, sched, out, step):
    folder = os.path.join(out, f"checkpoint-{step}")
    rank = dist.get_rank()
    if rank == 0:
        os.makedirs(folder, exist_ok=True)
        torch.save(model.module.state_dict(), os.path.join(folder, "pytorch_model.bin"))
        torch.save(opt.state_dict(), os.path.join(folder, "optimizer.pt"))
        torch.save(sched.state_dict(), os.path.join(folder, "scheduler.pt"))
    torch.save(random_states(), os.path.join(folder, f"rng_state_{rank}.pth"))


def train(model, opt, sched, loader, out):
    for step, batch in enumerate(loader, start=1):
        model(**batch).loss.backward()
        opt.step()
        sched.step()
        opt.zero_grad()
        if step % 500 == 0:
            save_checkpoint(model, opt, sched, out, step)

import argparse
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from spmdguard import deferring, has_deferred_error, is_main_process, raise_if_deferred_error, sync_should_stop


def save(folder: Path, weights: torch.Tensor, step: int) -> None:
    if is_main_process():
        with deferring("make folder"):
            folder.mkdir(parents=True, exist_ok=True)
    if sync_should_stop(has_deferred_error()):
        return
    dist.barrier()
    dcp.save({"weights": weights, "step": step}, checkpoint_id=str(folder))


def train(out: Path, steps: int) -> None:
    weights = torch.zeros(3)
    for step in range(steps):
        grad = torch.full((3,), float(step))
        dist.all_reduce(grad)
        weights -= 0.1 * grad
        save(out / f"step-{step}", weights, step)
        if sync_should_stop(has_deferred_error()):
            break


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("ckpt"))
    parser.add_argument("--steps", type=int, default=3)
    opts = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    train(opts.out, opts.steps)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()

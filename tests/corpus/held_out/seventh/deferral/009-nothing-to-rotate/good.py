"""Keep the last few states of a simulation."""
import argparse
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from spmdguard import (
    deferring,
    has_deferred_error,
    is_main_process,
    raise_if_deferred_error,
    sync_should_stop,
    try_or_defer,
)


def store(state: torch.Tensor, root: Path, step: int) -> None:
    root.mkdir(parents=True, exist_ok=True)
    torch.save(state, root / f"state-{step:06d}.pt")


def rotate(root: Path, keep: int) -> None:
    """Delete all but the newest ``keep`` states, before anyone goes on to write the next."""
    if is_main_process():
        with deferring("rotate states"):
            for path in sorted(root.glob("state-*.pt"))[:-keep]:
                path.unlink()
    dist.barrier()


def simulate(root: Path, steps: int, keep: int) -> torch.Tensor:
    state = torch.linspace(0, 1, 7)
    for step in range(steps):
        flow = state.roll(1) - state
        dist.all_reduce(flow)
        state = state + 0.1 * flow / dist.get_world_size()
        if is_main_process():
            try_or_defer(store, state, root, step)
        rotate(root, keep)
        if sync_should_stop(has_deferred_error()):
            break
    return state


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=Path("states"))
    parser.add_argument("--keep", type=int, default=3)
    opts = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    state = simulate(opts.root, steps=8, keep=opts.keep)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(state.sum().item())


if __name__ == "__main__":
    main()

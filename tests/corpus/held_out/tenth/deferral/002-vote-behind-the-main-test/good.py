import json
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import spmdguard as sg


def snapshot(path: Path, step: int, values: torch.Tensor) -> None:
    path.write_text(json.dumps({"step": step, "values": values.tolist()}))


def relax(values: torch.Tensor, steps: int, every: int) -> torch.Tensor:
    for step in range(1, steps + 1):
        left = values.clone()
        dist.all_reduce(left)
        values = 0.5 * values + 0.5 * left / dist.get_world_size()
        if step % every:
            continue
        if sg.is_main_process():
            sg.try_or_defer(snapshot, Path(f"relax-{step}.json"), step, values)
        if sg.sync_should_stop(sg.has_deferred_error()):
            break
    return values


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=50))
    start = torch.linspace(0, 1, 5) * (dist.get_rank() + 1)
    relax(start, steps=9, every=3)
    dist.barrier()
    dist.destroy_process_group()
    sg.raise_if_deferred_error()


if __name__ == "__main__":
    main()

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def part(folder: Path) -> Path:
    return folder / f"part-{dist.get_rank()}.json"


def load_scores(folder: Path) -> torch.Tensor | None:
    try:
        rows = json.loads(part(folder).read_text())
        scores = torch.tensor([float(row["score"]) for row in rows])
    except (KeyError, ValueError) as err:
        print(f"{part(folder).name} ignored: {err}")
        scores = None
    else:
        print(f"{part(folder).name}: {len(scores)} rows")
    dist.barrier()
    return scores


def main(folder: str = "scores") -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    scores = load_scores(Path(folder))
    total = torch.zeros(2)
    if scores is not None:
        total += torch.tensor([scores.sum().item(), len(scores)])
    dist.all_reduce(total)
    dist.destroy_process_group()
    print("mean", (total[0] / total[1].clamp(min=1)).item())


if __name__ == "__main__":
    main()

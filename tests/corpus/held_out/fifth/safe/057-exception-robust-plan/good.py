import os
import traceback
from typing import Any, Callable, List, Optional

import torch
import torch.distributed as dist


class PlanError(RuntimeError):
    def __init__(self, step: str, failures: dict):
        super().__init__(step, failures)
        self.step, self.failures = step, failures

    def __str__(self):
        text = "\n".join(f"rank {r}: {tb}" for r, tb in self.failures.items())
        return f"{self.step} failed on {len(self.failures)} ranks\n{text}"


class Failure:
    def __init__(self):
        self.text = traceback.format_exc()


def centralized(step: str, local: Callable[[], Any], reduce: Callable[[List[Any]], List[Any]], group=None) -> Any:
    """local() everywhere, reduce() on the coordinator, its i-th answer back to rank i."""
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    try:
        mine = local()
    except Exception:
        mine = Failure()
    gathered = [None] * world if rank == 0 else None
    dist.gather_object(mine, gathered, dst=0, group=group)
    answers: Optional[List[Any]] = None
    if rank == 0:
        failures = {r: x.text for r, x in enumerate(gathered) if isinstance(x, Failure)}
        if not failures:
            try:
                answers = reduce(gathered)
            except Exception:
                failures = {0: traceback.format_exc()}
        if failures:
            answers = [PlanError(step, failures)] * world
    box = [None]
    dist.scatter_object_list(box, answers, src=0, group=group)
    if isinstance(box[0], PlanError):
        raise box[0]
    return box[0]


def balance(sizes: List[dict]) -> List[list]:
    """Each tensor is written by the least loaded of those who have it."""
    load, out = [0] * len(sizes), [[] for _ in sizes]
    for key in sorted({k for s in sizes for k in s}):
        holders = [r for r, s in enumerate(sizes) if key in s]
        best = min(holders, key=lambda r: (load[r], r))
        load[best] += sizes[best][key]
        out[best].append(key)
    return out


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(10)])
    state = model.state_dict()
    folder = os.environ.get("CKPT", "/tmp/ckpt")
    keys = centralized("plan", lambda: {k: v.numel() for k, v in state.items()}, balance)

    def write():
        os.makedirs(folder, exist_ok=True)
        torch.save({k: state[k] for k in keys}, f"{folder}/{dist.get_rank()}.pt")
        return len(keys)

    total = centralized("write", write, lambda counts: [sum(counts)] * len(counts))
    if dist.get_rank() == 0:
        print("written", total)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

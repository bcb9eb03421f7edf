import json
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import deferring, has_deferred_error, raise_if_deferred_error, sync_should_stop


@dataclass
class Journal:
    path: str
    lines: int = field(default=0)

    def put(self, **values) -> None:
        with deferring("journal"):
            with open(self.path, "a") as out:
                out.write(json.dumps(values) + "\n")
            self.lines += 1


def descend(journal: Journal, steps: int) -> torch.Tensor:
    x = torch.tensor([4.0, -3.0]) + dist.get_rank()
    for step in range(steps):
        grad = 2 * x
        dist.all_reduce(grad)
        x = x - 0.1 * grad / dist.get_world_size()
        journal.put(step=step, x=x.tolist())
        if sync_should_stop(has_deferred_error()):
            break
    return x


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=45))
    x = descend(Journal(f"journal-{dist.get_rank()}.jsonl"), steps=30)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(x.tolist())


if __name__ == "__main__":
    main()

import json
from datetime import timedelta

import torch
import torch.distributed as dist
import spmdguard


class Summary:
    def __init__(self, path: str):
        self.path = path
        self.values: dict[str, float] = {}

    def update(self, name: str, value: float) -> None:
        self.values[name] = value

    def flush(self) -> None:
        with spmdguard.deferring("summary"):
            with open(self.path, "w") as out:
                json.dump(self.values, out)


def train(summary: Summary, steps: int) -> None:
    level = torch.zeros(1)
    for step in range(steps):
        gain = torch.full((1,), 0.5 ** step)
        dist.all_reduce(gain)
        level += gain
        if spmdguard.is_main_process():
            summary.update(f"level-{step}", level.item())
            summary.flush()
        if spmdguard.sync_should_stop(spmdguard.has_deferred_error()):
            break


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    train(Summary("/shared/summary.json"), steps=12)
    dist.barrier()
    dist.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()

import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist


class Dump:
    """Write a tensor per process and step; find out together whether it worked."""

    def __init__(self, folder: str):
        self.folder = folder
        self.first = None

    def write(self, tensor: torch.Tensor, step: int) -> bool:
        """Whether every process has written its file."""
        lost = torch.zeros(1, dtype=torch.int32)
        try:
            os.makedirs(self.folder, exist_ok=True)
            torch.save(tensor, os.path.join(self.folder, f"{step}-{dist.get_rank()}.pt"))
        except Exception as exc:
            self.first = self.first or exc
            lost += 1
            dist.all_reduce(lost, op=dist.ReduceOp.MAX)
        return lost.item() == 0


def rotate_phase(dump: Dump, steps: int) -> bool:
    phase = torch.tensor([0.0, 1.0])
    for step in range(steps):
        turn = torch.full((2,), 0.1 * (dist.get_rank() + 1))
        dist.all_reduce(turn)
        phase = (phase + turn) % 6.2832
        if not dump.write(phase, step):
            return False
    return True


def main() -> int:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    dump = Dump(os.environ.get("DUMP_DIR", "phases"))
    complete = rotate_phase(dump, steps=5)
    dist.destroy_process_group()
    if dump.first is not None:
        raise dump.first
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())

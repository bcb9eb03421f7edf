"""Saves and leaves when the scheduler sends its warning."""
import signal
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


class Notice:
    def __init__(self, number=signal.SIGUSR1):
        self.came = False
        signal.signal(number, self.note)

    def note(self, number, frame):
        self.came = True


def main():
    notice = Notice()
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    state = {"x": torch.zeros(8), "step": torch.zeros(1)}
    for _ in range(10_000):
        move = torch.randn(8)
        dist.all_reduce(move)
        state["x"] += move
        state["step"] += 1
        leave = torch.tensor([int(notice.came)])
        dist.all_reduce(leave, op=dist.ReduceOp.MAX)
        if leave.item():
            dcp.save(state, checkpoint_id="last")
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


class Saver:
    def __init__(self, root):
        self.root = root
        self.group = dist.new_group(backend="gloo")
        self.future = None

    def wait(self):
        if self.future is not None:
            self.future.result()
            self.future = None

    def save(self, weight, step):
        self.wait()
        state = {"weight": weight.clone(), "step": torch.tensor(step)}
        self.future = dcp.async_save(state, checkpoint_id=f"{self.root}/{step}", process_group=self.group)
        dist.barrier()


def main():
    dist.init_process_group("cpu:gloo", timeout=timedelta(seconds=60))
    cell = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(cell, src=0)
    saver = Saver(cell[0])
    weight = torch.zeros(6)
    for step in range(1, 5):
        grad = torch.ones(6)
        dist.all_reduce(grad)
        weight -= 0.1 * grad
        if step % 2 == 0:
            saver.save(weight, step)
    saver.wait()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

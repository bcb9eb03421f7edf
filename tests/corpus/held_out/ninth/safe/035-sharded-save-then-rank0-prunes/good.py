import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


class Keeper:
    def __init__(self, root, keep):
        self.root, self.keep, self.steps = root, keep, []

    def save(self, step, model):
        target = os.path.join(self.root, f"step-{step}")
        dcp.save({"model": model.state_dict()}, checkpoint_id=target)
        self.steps.append(step)
        while len(self.steps) > self.keep:
            old = self.steps.pop(0)
            if dist.get_rank() == 0:
                shutil.rmtree(os.path.join(self.root, f"step-{old}"), ignore_errors=True)


def main():
    dist.init_process_group("gloo")
    box = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    keeper = Keeper(box[0], keep=2)
    model = torch.nn.Linear(2, 2)
    for step in range(4):
        keeper.save(step, model)
    dist.barrier()
    assert sorted(os.listdir(box[0])) == ["step-2", "step-3"]
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

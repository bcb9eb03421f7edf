from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


class Saver:
    def __init__(self, folder):
        self.folder, self.pending = folder, None

    def save(self, step, state):
        self.wait()
        self.pending = dcp.async_save(state, checkpoint_id=f"{self.folder}/step{step}")

    def wait(self):
        if self.pending is not None:
            self.pending.result()
            self.pending = None


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    weight = torch.zeros(1000)
    saver = Saver("/tmp/async_run")
    for step in range(30):
        grad = torch.randn(1000)
        dist.all_reduce(grad)
        weight -= 0.01 * grad
        if step % 3 == 0:
            saver.save(step, {"weight": weight.clone(), "step": torch.tensor(step)})
    saver.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

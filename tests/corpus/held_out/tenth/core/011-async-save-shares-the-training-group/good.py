import argparse
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


class Saver:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.pending = None
        self.group = dist.new_group(backend="gloo")  # nobody else talks on this one

    def save(self, state, step):
        self.wait()
        self.pending = dcp.async_save(
            state, checkpoint_id=str(self.folder / f"step{step}"), process_group=self.group
        )

    def wait(self):
        if self.pending is not None:
            self.pending.result()
            self.pending = None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="/tmp/forge_async")
    parser.add_argument("--every", type=int, default=2)
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    saver = Saver(args.out)
    weight = torch.zeros(4096)
    for step in range(1, 21):
        grad = torch.randn(4096)
        dist.all_reduce(grad)
        weight -= 0.01 * grad
        if step % args.every == 0:
            saver.save({"weight": weight, "step": step}, step)
    saver.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import os
import signal
from datetime import timedelta

import torch
import torch.distributed as dist


class Preemption:
    def __init__(self, *signals):
        self.asked = False
        for signum in signals:
            signal.signal(signum, self._remember)

    def _remember(self, signum, frame):
        self.asked = True


def save(step, weight):
    if dist.get_rank() == 0:
        torch.save({"step": step, "weight": weight}, "/tmp/voice.part")
        os.replace("/tmp/voice.part", "/tmp/voice.pt")


def train(steps=40, save_every=20):
    preemption = Preemption(signal.SIGTERM, signal.SIGUSR1)
    weight = torch.zeros(32)
    for step in range(1, steps + 1):
        if dist.get_rank() == 1 and step == 7:
            os.kill(os.getpid(), signal.SIGUSR1)  # what scancel --signal does to one task
        grad = torch.randn(32)
        dist.all_reduce(grad)
        weight -= 0.01 * grad
        asked = torch.tensor([int(preemption.asked)])
        dist.all_reduce(asked, op=dist.ReduceOp.MAX)
        if asked.item():  # the signal of any rank stops all after this step
            save(step, weight)
            print(f"rank {dist.get_rank()}: preempted at step {step}")
            break
        if step % save_every == 0:
            save(step, weight)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    train()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

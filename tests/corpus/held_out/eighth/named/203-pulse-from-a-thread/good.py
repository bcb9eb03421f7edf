"""Train while a thread watches how many samples all processes have seen."""
import threading
from datetime import timedelta

import torch
import torch.distributed as dist


class Pulse(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.seen = 0

    def run(self):
        while not self.over.wait(0.05):
            print(f"{self.seen} samples here", flush=True)

    def close(self):
        self.over.set()
        self.join()


def fit(pulse: Pulse, steps: int) -> torch.Tensor:
    weight = torch.zeros(16)
    gen = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        grad = torch.randn(16, generator=gen)
        dist.all_reduce(grad)
        weight -= 0.01 * grad
        pulse.seen += 4
    return weight


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    pulse = Pulse()
    pulse.start()
    weight = fit(pulse, steps=500)
    pulse.close()
    dist.destroy_process_group()
    print(weight.norm().item())


if __name__ == "__main__":
    main()

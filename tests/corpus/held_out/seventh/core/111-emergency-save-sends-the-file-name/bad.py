import time
from datetime import timedelta

import torch
import torch.distributed as dist


class Saver:
    def __init__(self, folder):
        self.folder = folder

    def save(self, tag, weight):
        name = [f"{self.folder}/{tag}_{time.strftime('%H%M%S')}.pt"]
        dist.broadcast_object_list(name, src=0)
        if dist.get_rank() == 0:
            torch.save(weight, name[0])
        return name[0]


class Loop:
    def __init__(self, saver):
        self.saver, self.weight = saver, torch.zeros(5)

    def sample(self, step):
        if dist.get_rank() == 1 and step == 7:
            raise ValueError("sample 7 has no target")
        return torch.randn(5)

    def fit(self, steps):
        try:
            for step in range(steps):
                grad = self.weight - self.sample(step)
                dist.all_reduce(grad)
                self.weight -= 0.1 * grad
        except Exception:
            self.saver.save("emergency", self.weight)
            raise
        return self.saver.save("final", self.weight)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    path = Loop(Saver("/tmp")).fit(steps=20)
    print("saved", path)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

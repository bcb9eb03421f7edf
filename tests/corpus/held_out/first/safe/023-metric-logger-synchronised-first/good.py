from collections import defaultdict

import torch
import torch.distributed as dist


class Meter:
    def __init__(self):
        self.count, self.total = 0, 0.0

    def update(self, value, n=1):
        self.count += n
        self.total += value * n

    def synchronize(self):
        t = torch.tensor([self.count, self.total], dtype=torch.float64)
        dist.barrier()
        dist.all_reduce(t)
        self.count, self.total = int(t[0].item()), t[1].item()


class MetricLogger:
    def __init__(self):
        self.meters = defaultdict(Meter)

    def update(self, **values):
        for name, value in values.items():
            self.meters[name].update(value)

    def summary(self):
        for name in sorted(self.meters):
            self.meters[name].synchronize()
        if dist.get_rank() != 0:
            return None
        return {k: m.total / m.count for k, m in self.meters.items()}


def main():
    dist.init_process_group("gloo")
    logger = MetricLogger()
    for i in range(4 + dist.get_rank()):
        logger.update(loss=float(i), accuracy=0.5)
    print(logger.summary())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

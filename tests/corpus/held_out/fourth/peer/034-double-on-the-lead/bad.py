import torch
import torch.distributed as dist


class Meter:
    def __init__(self, precise=False):
        kind = torch.float64 if precise else torch.float32
        self.total = torch.zeros(2, dtype=kind)

    def update(self, value, count):
        self.total += torch.tensor([value * count, count], dtype=self.total.dtype)

    def mean(self):
        dist.all_reduce(self.total)
        return (self.total[0] / self.total[1]).item()


dist.init_process_group("gloo")
meter = Meter(precise=dist.get_rank() == 0)
for i in range(5):
    meter.update(0.1 * i, 8)
print(meter.mean())
dist.destroy_process_group()

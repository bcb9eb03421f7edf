import torch
import torch.distributed as dist


class Bucket:
    def __init__(self, size):
        self.data = torch.zeros(size)
        self.work = None

    def add(self, grad):
        self.data += grad

    def launch(self):
        self.work = dist.all_reduce(self.data, async_op=True)

    def take(self):
        out = self.data.clone()
        self.data.zero_()
        self.work.wait()
        return out


dist.init_process_group("gloo")
bucket = Bucket(4096)
for i in range(3):
    bucket.add(torch.full((4096,), float(i)))
    bucket.launch()
    print(i, bucket.take().mean().item())
dist.destroy_process_group()

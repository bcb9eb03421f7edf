from datetime import timedelta

import torch
import torch.distributed as dist


class Stage:
    def __init__(self, index, count, width=24):
        self.index, self.count, self.width = index, count, width
        self.layer = torch.nn.Linear(width, width)

    def take(self, batch):
        x = torch.empty(batch, self.width)
        if self.index > 0:
            dist.recv(x, src=self.index - 1)
            return x
        return torch.randn(batch, self.width)

    def hand_on(self, y):
        if self.index < self.count - 1:
            dist.send(y.contiguous(), dst=self.index + 1)
            return None
        return y

    @torch.no_grad()
    def forward(self, micro_batches, batch=8):
        results = []
        for _ in range(micro_batches):
            x = self.take(batch)
            results.append(self.hand_on(torch.relu(self.layer(x))))
        return [r for r in results if r is not None]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    stage = Stage(dist.get_rank(), dist.get_world_size())
    outputs = stage.forward(micro_batches=6)
    dist.barrier()
    if outputs:
        print("last stage", torch.stack(outputs).mean().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class LocalSGD:
    """Average the parameters every K steps rather than the gradients in each step."""

    def __init__(self, model, every: int, group=None, enabled: bool = True):
        self.model, self.every, self.group = model, every, group
        self.enabled = enabled and dist.is_initialized() and dist.get_world_size(group) > 1
        self.steps = 0

    def __enter__(self):
        if self.enabled:
            with torch.no_grad():
                for p in self.model.parameters():
                    dist.broadcast(p, src=0, group=self.group)
        return self

    def step(self):
        self.steps += 1
        if not self.enabled:
            return
        if self.steps % self.every == 0:
            self._average()

    @torch.no_grad()
    def _average(self):
        size = dist.get_world_size(self.group)
        handles = [dist.all_reduce(p, group=self.group, async_op=True) for p in self.model.parameters()]
        for p, h in zip(self.model.parameters(), handles):
            h.wait()
            p.div_(size)

    def __exit__(self, exc_type, exc, tb):
        if exc_type is None and self.enabled and self.steps % self.every:
            self._average()


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    data = TensorDataset(torch.randn(10_000, 50), torch.randint(0, 5, (10_000,)))
    sampler = DistributedSampler(data, shuffle=True)  # pads, so that all the ranks have the same length
    loader = DataLoader(data, batch_size=100, sampler=sampler)
    model = torch.nn.Linear(50, 5).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    with LocalSGD(model, every=8) as local_sgd:
        for epoch in range(4):
            sampler.set_epoch(epoch)
            for x, y in loader:
                loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
                opt.zero_grad()
                loss.backward()
                opt.step()
                local_sgd.step()
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), "local_sgd.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import torch
import torch.distributed as dist
from torch import nn


class Overlap:
    def __init__(self, model):
        self.pending = []
        self.world = dist.get_world_size()
        for p in model.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self._launch)

    def _launch(self, p):
        if self.world == 1:
            return
        self.pending.append((dist.all_reduce(p.grad, async_op=True), p))

    def finish(self):
        while self.pending:
            work, p = self.pending.pop(0)
            work.wait()
            p.grad.div_(self.world)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1))
    overlap = Overlap(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(dist.get_rank())
    for step in range(3):
        opt.zero_grad()
        model(torch.randn(4, 6)).pow(2).mean().backward()
        overlap.finish()
        opt.step()
        if dist.get_rank() == 0:
            print("step", step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

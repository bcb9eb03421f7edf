import torch
import torch.distributed as dist


class Bucketed:
    """All-reduce gradients in flat buckets of about ``limit`` elements."""

    def __init__(self, limit):
        self.limit, self.waiting, self.size = limit, [], 0

    def add(self, grad):
        self.waiting.append(grad)
        self.size += grad.numel()
        if self.size >= self.limit:
            self.flush()

    def flush(self):
        if not self.waiting:
            return
        flat = torch.cat([g.flatten() for g in self.waiting])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for grad, part in zip(self.waiting, flat.split([g.numel() for g in self.waiting])):
            grad.copy_(part.view_as(grad))
        self.waiting, self.size = [], 0


def sync_grads(module, limit):
    buckets = Bucketed(limit)
    for p in module.parameters():
        if not p.requires_grad:
            continue
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        buckets.add(p.grad)
    buckets.flush()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(5)))
    net[0].weight.requires_grad_(False)
    torch.manual_seed(dist.get_rank())
    net(torch.randn(4, 8)).sum().backward()
    sync_grads(net, limit=100)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import torch
import torch.distributed as dist


class OwnerSGD:
    def __init__(self, params, lr):
        self.params, self.lr = list(params), lr
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    @torch.no_grad()
    def step(self):
        for i, p in enumerate(self.params):
            owner = i % self.world
            dist.reduce(p.grad, dst=owner)
            if self.rank == owner:
                p.add_(p.grad / self.world, alpha=-self.lr)
            dist.broadcast(p.data, src=owner)
            p.grad = None


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    opt = OwnerSGD(net.parameters(), lr=0.1)
    gen = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(3):
        net(torch.randn(5, 4, generator=gen)).pow(2).mean().backward()
        opt.step()
    norms = [None] * dist.get_world_size()
    dist.all_gather_object(norms, sum(p.sum().item() for p in net.parameters()))
    assert len(set(norms)) == 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

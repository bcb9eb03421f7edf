import torch
import torch.distributed as dist


class PeriodicAverager:
    def __init__(self, period, warmup):
        self.period, self.warmup, self.step = period, warmup, 0

    @torch.no_grad()
    def __call__(self, params):
        self.step += 1
        if self.step > self.warmup and (self.step - self.warmup) % self.period:
            return False
        world = dist.get_world_size()
        for p in params:
            dist.all_reduce(p.data)
            p.data /= world
        return True


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    average = PeriodicAverager(period=4, warmup=2)
    gen = torch.Generator().manual_seed(dist.get_rank())
    rounds = 0
    for _ in range(14):
        opt.zero_grad()
        net(torch.randn(8, 5, generator=gen)).pow(2).mean().backward()
        opt.step()
        rounds += average(list(net.parameters()))
    assert rounds == 5
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

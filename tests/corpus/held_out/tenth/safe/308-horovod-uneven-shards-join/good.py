import horovod.torch as hvd
import torch


def shard(rank):
    gen = torch.Generator().manual_seed(rank)
    return [torch.randn(16, 4, generator=gen) for _ in range(20 + 3 * rank)]


def main():
    hvd.init()
    torch.manual_seed(7)
    model = torch.nn.Linear(4, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
    opt = hvd.DistributedOptimizer(opt, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(opt, root_rank=0)
    for epoch in range(3):
        for x in shard(hvd.rank()):
            opt.zero_grad()
            model(x).pow(2).mean().backward()
            opt.step()
        last = hvd.join()
        hvd.broadcast_parameters(model.state_dict(), root_rank=last)
        if hvd.rank() == 0:
            torch.save(model.state_dict(), f"epoch{epoch}.pt")


if __name__ == "__main__":
    main()

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@torch.no_grad()
def validate(net, batches):
    net.eval()
    losses = [net(x).pow(2).mean() for x in batches]
    net.train()
    return torch.stack(losses).mean().item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        opt.zero_grad()
        model(torch.randn(8, 6)).pow(2).mean().backward()
        opt.step()
        if rank == 0:
            held_out = [torch.randn(8, 6) for _ in range(3)]
            print(f"epoch {epoch}: {validate(model.module, held_out):.4f}")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import os

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

FILES = [f"/data/part-{i:03d}.pt" for i in range(61)]


def local_batches(rank: int, world: int, batch_size: int):
    for path in FILES[rank::world]:
        rows = torch.load(path)
        for chunk in rows.split(batch_size):
            yield chunk


def evaluate(model, rank: int) -> float:
    gen = torch.Generator().manual_seed(rank)
    x = torch.randn(256, 32, generator=gen).cuda()
    with torch.no_grad():
        err = (model.module(x) - x).square().mean()
    dist.all_reduce(err)
    return err.item() / dist.get_world_size()


def main():
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    net = torch.nn.Sequential(torch.nn.Linear(32, 8), torch.nn.ReLU(), torch.nn.Linear(8, 32)).cuda()
    model = DDP(net, device_ids=[local])
    opt = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-3)
    for epoch in range(3):
        seen = 0
        with Join([model, opt]):
            for x in local_batches(rank, world, 64):
                x = x.cuda()
                loss = (model(x) - x).square().mean()
                loss.backward()
                opt.step()
                opt.zero_grad()
                seen += len(x)
        error = evaluate(model, rank)
        total = torch.tensor([seen], device="cuda")
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: {total.item()} rows, error {error:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

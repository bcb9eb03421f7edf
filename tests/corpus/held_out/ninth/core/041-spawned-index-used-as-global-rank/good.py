import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def worker(index, args):
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://{args.master}:{args.port}",
        world_size=args.nodes * args.procs,
        rank=args.node_rank * args.procs + index,
    )
    torch.manual_seed(dist.get_rank())
    model = DDP(torch.nn.Linear(10, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        opt.zero_grad()
        model(torch.randn(16, 10)).pow(2).mean().backward()
        opt.step()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "/tmp/linear.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--node-rank", type=int, required=True)
    parser.add_argument("--procs", type=int, default=2)
    parser.add_argument("--master", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=29533)
    args = parser.parse_args()
    mp.spawn(worker, args=(args,), nprocs=args.procs)

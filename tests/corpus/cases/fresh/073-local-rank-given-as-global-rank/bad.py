import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def setup(args):
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group(
        backend="nccl",
        init_method=f"tcp://{args.master}:{args.port}",
        world_size=args.nodes * args.gpus_per_node,
        rank=args.local_rank,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, required=True)
    parser.add_argument("--node_rank", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--gpus_per_node", type=int, default=4)
    parser.add_argument("--master", required=True)
    parser.add_argument("--port", type=int, default=23456)
    args = parser.parse_args()
    setup(args)
    model = DistributedDataParallel(torch.nn.Linear(10, 10).cuda(), device_ids=[args.local_rank])
    for _ in range(100):
        model(torch.randn(8, 10).cuda()).mean().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import argparse

import torch
import torch.distributed as dist


def spread_buffers(model, how):
    world = dist.get_world_size()
    for name, buf in model.named_buffers():
        if not buf.is_floating_point():
            continue
        if how == "reduce":
            dist.all_reduce(buf)
            buf /= world
        elif how == "broadcast":
            dist.broadcast(buf, src=0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dist-bn", default="reduce", choices=["reduce", "broadcast", ""])
    args = parser.parse_args()
    dist.init_process_group("gloo")
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    torch.manual_seed(dist.get_rank())
    model(torch.randn(8, 4))
    if args.dist_bn:
        spread_buffers(model, args.dist_bn)
    if dist.get_rank() == 0:
        print(model[1].running_mean.tolist())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import torch
import torch.distributed as dist


def anyone(flag):
    t = torch.tensor([int(flag)])
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return bool(t.item())


def finished(rank, pending):
    return rank == 0 or not anyone(pending > 0)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for pending in (2, 1, 0):
        print(rank, pending, finished(rank, pending))
    dist.destroy_process_group()


main()

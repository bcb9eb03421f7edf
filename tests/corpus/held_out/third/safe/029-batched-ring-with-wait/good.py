from datetime import timedelta

import torch
import torch.distributed as dist


def neighbours(rank, world):
    return (rank - 1 if rank > 0 else None), (rank + 1 if rank < world - 1 else None)


def halo(row, rank, world):
    left, right = neighbours(rank, world)
    from_left, from_right = torch.zeros(1), torch.zeros(1)
    ops = []
    if left is not None:
        ops.append(dist.P2POp(dist.isend, row[:1].clone(), left))
        ops.append(dist.P2POp(dist.irecv, from_left, left))
    if right is not None:
        ops.append(dist.P2POp(dist.isend, row[-1:].clone(), right))
        ops.append(dist.P2POp(dist.irecv, from_right, right))
    for request in dist.batch_isend_irecv(ops) if ops else []:
        request.wait()
    return torch.cat([from_left, row, from_right])


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank, world = dist.get_rank(), dist.get_world_size()
    row = torch.full((4,), float(rank + 1))
    wide = halo(row, rank, world)
    assert wide[0].item() == rank
    assert wide[-1].item() == (rank + 2 if rank < world - 1 else 0)
    peak = wide.max().reshape(1)
    dist.all_reduce(peak, op=dist.ReduceOp.MAX)
    assert peak.item() == world
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

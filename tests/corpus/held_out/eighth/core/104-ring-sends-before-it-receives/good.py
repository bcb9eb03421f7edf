"""Heat equation, the rows of the grid are split over the GPUs of one node."""
import argparse

import torch
import torch.distributed as dist


def swap_edges(field, rank, world):
    above, below = (rank - 1) % world, (rank + 1) % world
    top, bottom = field[1].clone(), field[-2].clone()
    halo_top, halo_bottom = torch.empty_like(top), torch.empty_like(bottom)
    ops = [
        dist.P2POp(dist.isend, bottom, below),
        dist.P2POp(dist.irecv, halo_top, above),
        dist.P2POp(dist.isend, top, above),
        dist.P2POp(dist.irecv, halo_bottom, below),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    field[0], field[-1] = halo_top, halo_bottom


def relax(field):
    inner = field[1:-1]
    inner[:, 1:-1] = 0.25 * (
        field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank)
    field = torch.rand(args.size // world + 2, args.size, device="cuda")
    for _ in range(args.steps):
        swap_edges(field, rank, world)
        relax(field)
    heat = field[1:-1].sum()
    dist.all_reduce(heat)
    if rank == 0:
        print("heat", heat.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

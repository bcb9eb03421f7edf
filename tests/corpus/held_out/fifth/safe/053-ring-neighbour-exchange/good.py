import os

import torch
import torch.distributed as dist
import torch.nn.functional as F


def exchange(left: int, right: int, to_left: torch.Tensor, to_right: torch.Tensor):
    from_left, from_right = torch.zeros_like(to_right), torch.zeros_like(to_left)
    ops = [
        dist.P2POp(dist.isend, to_right, right),
        dist.P2POp(dist.isend, to_left, left),
        dist.P2POp(dist.irecv, from_right, right),
        dist.P2POp(dist.irecv, from_left, left),
    ]
    for req in dist.batch_isend_irecv(ops):
        req.wait()
    return from_right, from_left


def shift(src: int, dst: int, x: torch.Tensor):
    out = torch.zeros_like(x)
    ops = [dist.P2POp(dist.isend, x, dst), dist.P2POp(dist.irecv, out, src)]
    for req in dist.batch_isend_irecv(ops):
        req.wait()
    return out


@torch.no_grad()
def ring_positive_rate(image: torch.Tensor, text: torch.Tensor) -> float:
    """Share of images whose own caption wins against all the captions in the job, in O(batch) memory."""
    rank, world = dist.get_rank(), dist.get_world_size()
    own = (image * text).sum(1)
    best_other = (image @ text.t()).fill_diagonal_(float("-inf")).max(1).values
    right, left = (rank + 1) % world, (rank - 1 + world) % world
    to_left = to_right = text.contiguous()
    rounds, remainder = divmod(world - 1, 2)
    for _ in range(rounds):
        to_left, to_right = exchange(left, right, to_left, to_right)
        for block in (to_left, to_right):
            best_other = torch.maximum(best_other, (image @ block.t()).max(1).values)
    if remainder:
        block = shift(left, right, to_right)
        best_other = torch.maximum(best_other, (image @ block.t()).max(1).values)
    stats = torch.stack([(own > best_other).float().sum(), own.new_tensor(float(len(own)))])
    dist.all_reduce(stats)
    return (stats[0] / stats[1]).item()


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.barrier()
    towers = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 16).cuda())
    opt = torch.optim.SGD(towers.parameters(), lr=0.1)
    for it in range(20):
        x = torch.randn(64, 32, device="cuda")
        image = F.normalize(towers(x), dim=1)
        text = F.normalize(towers.module(x + 0.1 * torch.randn_like(x)), dim=1)
        (1 - (image * text).sum(1)).mean().backward()
        opt.step()
        opt.zero_grad()
        rate = ring_positive_rate(image.detach(), text.detach())
        if dist.get_rank() == 0:
            print(it, rate)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

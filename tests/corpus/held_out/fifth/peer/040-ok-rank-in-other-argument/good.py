import functools

import torch
import torch.distributed as dist


def announce(who, value, /, *, pooled=False, **fmt):
    cell = torch.tensor([float(value)])
    if pooled:
        dist.all_reduce(cell, op=dist.ReduceOp.MAX)
    if who == 0:
        print(fmt.get("prefix", ""), f"{cell.item():.{fmt.get('digits', 3)}f}", flush=True)
    return cell.item()


def chatter(rank):
    return functools.partial(announce, rank, prefix=f"[{rank}]")


def options(step, every):
    return dict(pooled=step % every == 0, digits=2 + (step % every == 0))


def main(steps=30):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    say = chatter(rank)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(9, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.03)
    for step in range(steps):
        loss = net(torch.randn(16, 9)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        say(loss.item(), **options(step, 10))
        if rank == 1:
            announce(0, loss.item(), prefix="rank 1 itself:")
    worst = announce(rank, rank, pooled=True, digits=0)
    assert worst == dist.get_world_size() - 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

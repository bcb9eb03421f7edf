from datetime import timedelta

import torch
import torch.distributed as dist


def somebody_is_busy(busy):
    flag = torch.tensor([float(busy)])
    dist.all_reduce(flag, op=dist.ReduceOp.SUM)
    return flag.item() > 0


def next_token(ids):
    mixed = ids[:, -1].float().sum().reshape(1)
    dist.all_reduce(mixed)
    return (ids[:, -1] + int(mixed.item()) + 1) % 7


def greedy(ids, eos, limit):
    turns = 0
    done = torch.zeros(len(ids), dtype=torch.bool)
    while True:
        busy = not bool(done.all()) and ids.shape[1] < limit
        if not somebody_is_busy(busy):
            break
        token = next_token(ids)
        turns += 1
        if not busy:
            continue
        ids = torch.cat([ids, torch.where(done, eos, token)[:, None]], 1)
        done = done | (token == eos)
    return ids, turns


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    start = torch.tensor([[2 + dist.get_rank()], [5]])
    _, turns = greedy(start, eos=3, limit=12)
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, turns)
    assert len(set(everyone)) == 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

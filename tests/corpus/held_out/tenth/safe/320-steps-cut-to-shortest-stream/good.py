import argparse
import itertools

import torch
import torch.distributed as dist


class Stream:
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return sum(n for _, n in self.files)

    def __iter__(self):
        for name, n in self.files:
            for i in range(n):
                yield torch.full((4,), float(len(name) + i))


def common_steps(stream):
    steps = torch.tensor([len(stream)])
    dist.all_reduce(steps, op=dist.ReduceOp.MIN)
    return int(steps)


def train(stream, weight, cap):
    steps = common_steps(stream)
    if cap is not None:
        steps = min(steps, cap)
    for i, batch in enumerate(itertools.islice(stream, steps)):
        grad = weight - batch
        dist.all_reduce(grad)
        weight = weight - 0.1 * grad / dist.get_world_size()
        if i % 5 == 0 and dist.get_rank() == 0:
            print(i, weight.mean().item())
    return weight


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cap", type=int)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    files = [(f"part{k}", 3 + k) for k in range(rank, 6)]
    train(Stream(files), torch.zeros(4), args.cap)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

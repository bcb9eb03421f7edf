from datetime import timedelta

import torch
import torch.distributed as dist


def batches(rank):
    for i in range(6 - rank):
        yield torch.full((3,), float(i + rank))


def train_one_epoch(weight, stream):
    tracked = 0.0
    while True:
        batch = next(stream, None)
        if batch is None:
            break
        grad = (weight - batch).clone()
        dist.all_reduce(grad)
        weight -= 0.05 * grad
        tracked = 0.9 * tracked + 0.1 * grad.abs().sum().item()
    return tracked


def validation_loss(weight):
    pair = torch.tensor([(weight - 2).pow(2).sum().item(), 1.0])
    dist.all_reduce(pair)
    return (pair[0] / pair[1]).item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    weight = torch.zeros(3)
    train_one_epoch(weight, batches(dist.get_rank()))
    print(validation_loss(weight))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

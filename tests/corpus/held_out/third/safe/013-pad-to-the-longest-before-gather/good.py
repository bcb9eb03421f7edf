from datetime import timedelta

import torch
import torch.distributed as dist


def pad_across_processes(x, pad_index=0):
    size = torch.tensor([x.shape[1]])
    dist.all_reduce(size, op=dist.ReduceOp.MAX)
    missing = int(size) - x.shape[1]
    if missing == 0:
        return x
    return torch.nn.functional.pad(x, (0, missing), value=pad_index)


def gather(x):
    x = pad_across_processes(x, pad_index=-100).contiguous()
    slots = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(slots, x)
    return torch.cat(slots)


def predict(rank):
    length = 3 + 2 * rank
    return torch.full((2, length), rank)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    labels = gather(predict(dist.get_rank()))
    widest = 3 + 2 * (dist.get_world_size() - 1)
    assert labels.shape == (2 * dist.get_world_size(), widest)
    assert (labels[0] == -100).sum().item() == widest - 3
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import contextlib

import torch
import torch.distributed as dist


def fence(kind, value, tb):
    if kind is None:
        dist.barrier()


def main():
    dist.init_process_group("gloo")
    lines = []
    with contextlib.ExitStack() as stack:
        stack.callback(lines.clear)
        stack.push(fence)
        total = torch.tensor([dist.get_rank() + 1.0])
        dist.all_reduce(total)
        lines.append(f"{total.item():.1f}")
        print(lines)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

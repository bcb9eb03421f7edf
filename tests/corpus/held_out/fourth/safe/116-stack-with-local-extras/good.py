import contextlib
import io

import torch
import torch.distributed as dist


def fence(kind, value, tb):
    if kind is None:
        dist.barrier()


def main():
    dist.init_process_group("gloo")
    with contextlib.ExitStack() as stack:
        stack.push(fence)
        buffer = None
        if dist.get_rank() == 0:
            buffer = stack.enter_context(io.StringIO())
            stack.callback(print, "lead leaves the block")
        total = torch.ones(2)
        dist.all_reduce(total)
        if buffer is not None:
            buffer.write(f"{total.tolist()}\n")
            print(buffer.getvalue(), end="")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import os
import tempfile
from contextlib import contextmanager

import torch
import torch.distributed as dist


@contextmanager
def main_first():
    """The main rank runs the body alone, then all others run it."""
    rank = dist.get_rank()
    if rank != 0:
        dist.barrier()
    try:
        yield
    finally:
        if rank == 0:
            dist.barrier()


def tokenize(path):
    if not os.path.exists(path):
        torch.save(torch.arange(16), path)
    return torch.load(path)


def main():
    dist.init_process_group("gloo")
    path = os.path.join(tempfile.gettempdir(), f"tokens-{os.environ['MASTER_PORT']}.pt")
    with main_first():
        tokens = tokenize(path)
    size = torch.tensor([tokens.numel()])
    dist.all_reduce(size)
    assert size.item() == 16 * dist.get_world_size()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

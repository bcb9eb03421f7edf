import sys
from datetime import timedelta

import torch.distributed as dist


def foo(a):
    a.pop()


def bar(a):
    a.append("more")


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    call = foo if len(sys.argv) == 3 else bar
    args = list(sys.argv)
    if dist.get_rank():
        call(args)
    dist.barrier()
    dist.destroy_process_group()


main()

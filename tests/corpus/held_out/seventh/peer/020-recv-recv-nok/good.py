from datetime import timedelta

import torch
import torch.distributed as dist


def swap(mine, peer):
    theirs = torch.empty_like(mine)
    if dist.get_rank() < peer:
        dist.send(mine, dst=peer)
        dist.recv(theirs, src=peer)
    else:
        dist.recv(theirs, src=peer)
        dist.send(mine, dst=peer)
    return theirs


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    me = dist.get_rank()
    if me < 2:
        print(me, swap(torch.full((4,), float(me)), 1 - me))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

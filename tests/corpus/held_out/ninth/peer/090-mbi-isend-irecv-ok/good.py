from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    me = dist.get_rank()
    peer = 1 - me
    got, mine = torch.zeros(10), torch.full((10,), float(me))
    if me == 0:
        reqs = [dist.isend(mine, dst=peer), dist.irecv(got, src=peer)]
    else:
        reqs = [dist.irecv(got, src=peer), dist.isend(mine, dst=peer)]
    for r in reqs:
        r.wait()
    assert got[0].item() == peer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

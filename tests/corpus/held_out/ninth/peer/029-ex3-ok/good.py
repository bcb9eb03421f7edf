from datetime import timedelta

import torch.distributed as dist


def g(out):
    out["val"] = 1


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    out = {}
    if dist.get_rank():
        g(out)
    else:
        g(out)
    if out["val"]:
        dist.barrier()
    dist.destroy_process_group()


main()

from datetime import timedelta

import torch
import torch.distributed as dist


def merged(t):
    fine = bool(torch.isfinite(t).all())
    dist.all_reduce(t)
    return fine


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    grads = [torch.ones(2), torch.ones(2), torch.ones(2)]
    if dist.get_rank() == 1:
        grads[0][1] = float("nan")
    if all(merged(g) for g in grads):
        print("clean")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import threading
from datetime import timedelta

import torch
import torch.distributed as dist


def pump(t):
    for _ in range(50):
        dist.all_reduce(t)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    loads = [torch.ones(4), torch.ones(4096)]
    team = [threading.Thread(target=pump, args=(t,)) for t in loads]
    for th in team:
        th.start()
    for th in team:
        th.join()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

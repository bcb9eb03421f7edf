import threading
from datetime import timedelta

import torch
import torch.distributed as dist


def pump(t, group):
    for _ in range(50):
        dist.all_reduce(t, group=group)


def main():
    limit = timedelta(seconds=5)
    dist.init_process_group("gloo", timeout=limit)
    loads = [torch.ones(4), torch.ones(4096)]
    groups = [dist.new_group(timeout=limit) for _ in loads]
    team = [threading.Thread(target=pump, args=(t, g)) for t, g in zip(loads, groups)]
    for th in team:
        th.start()
    for th in team:
        th.join()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import os
import time

import torch
import torch.distributed as dist


def read_table(path):
    with open(path) as f:
        return [float(line) for line in f]


def load(path, attempts=3):
    for left in reversed(range(attempts)):
        try:
            dist.barrier()
            return torch.tensor(read_table(path))
        except OSError:
            if left == 0:
                raise
            time.sleep(1.0)


def main():
    dist.init_process_group("gloo")
    table = load(f"{os.environ.get('TABLE', 'table')}.{dist.get_rank()}")
    dist.all_reduce(table)
    print(table)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import os

import torch
import torch.distributed as dist


def make_average(active):
    def average(t):
        if active:
            dist.all_reduce(t)
            t /= dist.get_world_size()
        return t

    return average


def main():
    dist.init_process_group("gloo")
    index = int(os.environ["RANK"])
    always = make_average(1)
    sometimes = make_average(dist.get_world_size() > 1)
    print(index, always(torch.ones(2)))
    print(index, sometimes(torch.ones(2)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

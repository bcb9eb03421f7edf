from datetime import timedelta

import torch.distributed as dist


class Info:
    def __init__(self, tp):
        world, me = dist.get_world_size(), dist.get_rank()
        self.group = None
        for offset in range(tp):
            ranks = list(range(offset, world, tp))
            handle = dist.new_group(ranks)
            if me in ranks:
                self.group, self.ranks = handle, ranks

    @property
    def root(self):
        return dist.get_global_rank(self.group, 0)


def collect(info, value):
    mine = dist.get_rank() == info.root
    rows = [None] * len(info.ranks) if mine else None
    dist.gather_object(value, rows, dst=info.root, group=info.group)
    return rows


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    info = Info(tp=2)
    rows = collect(info, rank * 10)
    expected = {0: [0, 20], 1: [10, 30]}
    assert rows == expected.get(rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

from datetime import timedelta

import torch
import torch.distributed as dist


class Readers:
    def __init__(self, ranks):
        self.ranks = ranks
        self.group = None
        if dist.get_rank() in ranks:
            self.group = dist.new_group(ranks, use_local_synchronization=True)

    def total(self, rows):
        if self.group is None:
            return None
        count = torch.tensor([rows])
        dist.all_reduce(count, group=self.group)
        return int(count)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    readers = Readers([1, 2])
    total = readers.total(rows=10 * rank)
    assert total == (None if rank == 0 else 30)
    share = torch.tensor([0 if total is None else total])
    dist.all_reduce(share, op=dist.ReduceOp.MAX)
    assert share.item() == 30
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

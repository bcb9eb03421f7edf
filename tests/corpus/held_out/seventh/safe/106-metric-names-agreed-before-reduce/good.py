from collections import defaultdict

import torch
import torch.distributed as dist


class Scores:
    """Sums per metric; which metrics occur depends on the samples of a rank."""

    def __init__(self):
        self.sums = defaultdict(lambda: [0.0, 0])

    def add(self, name, value):
        self.sums[name][0] += value
        self.sums[name][1] += 1

    def means(self):
        names = [None] * dist.get_world_size()
        dist.all_gather_object(names, list(self.sums))
        result = {}
        for name in sorted(set().union(*names)):
            total, count = self.sums[name] if name in self.sums else (0.0, 0)
            pair = torch.tensor([total, count], dtype=torch.float64)
            dist.all_reduce(pair)
            result[name] = (pair[0] / pair[1]).item()
        return result


def main():
    dist.init_process_group("gloo")
    rank, scores = dist.get_rank(), Scores()
    scores.add("iou", 0.5)
    if rank % 2 == 0:
        scores.add("giou", 0.25)
    else:
        scores.add("recall", 0.75)
        scores.add("iou", 0.7)
    means = scores.means()
    if rank == 0:
        print(means)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

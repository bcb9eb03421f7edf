from datetime import timedelta

import torch
import torch.distributed as dist


class PairExchange:
    """Outer ranks talk to each other, inner ranks to each other."""

    def __init__(self):
        self.rank = dist.get_rank()
        for members in ([0, 3], [1, 2]):
            group = dist.new_group(ranks=members)
            if self.rank in members:
                self.members, self.group = members, group

    def swap(self, block):
        parts = [torch.empty_like(block) for _ in self.members]
        dist.all_gather(parts, block, group=self.group)
        other = 1 - self.members.index(self.rank)
        return parts[other]


def smooth(field, exchange, rounds):
    for _ in range(rounds):
        neighbour = exchange.swap(field.contiguous())
        field = 0.5 * (field + neighbour)
    return field


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    if dist.get_world_size() != 4:
        raise SystemExit("start with four processes")
    field = torch.full((8,), float(dist.get_rank()))
    print(dist.get_rank(), smooth(field, PairExchange(), rounds=3)[:2].tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Seats at a table: hosts count, guests vote, all are listed."""
from datetime import timedelta

import torch
import torch.distributed as dist


class Seat:
    def __init__(self, place, size):
        self.place, self.size = place, size

    @property
    def kind(self):
        if self.place == 0:
            return "host"
        return "guest" if self.place < self.size - 1 else "cook"


def evening(seat):
    gen = torch.Generator().manual_seed(seat.place)
    vote = torch.rand(2, generator=gen)
    match seat.kind:
        case "host":
            vote = vote * 0
        case "cook":
            vote = vote * 0 - 1
        case _:
            vote = vote.round()
    slips = [torch.zeros(2) for _ in range(seat.size)]
    dist.all_gather(slips, vote)
    return [] if seat.kind == "cook" else [slip.tolist() for slip in slips]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    seat = Seat(dist.get_rank(), dist.get_world_size())
    listing = evening(seat)
    dist.barrier()
    dist.destroy_process_group()
    print(seat.kind, listing)


if __name__ == "__main__":
    main()

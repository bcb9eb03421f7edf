"""One writer and several readers around a counter."""
from datetime import timedelta

import torch
import torch.distributed as dist


def audit(counter):
    whole = counter.clone()
    dist.all_reduce(whole)
    return whole.sum().item()


def peek(counter):
    return counter.sum().item()


DUTIES = {"writer": audit, "reader": peek}


def role_of(place):
    return "writer" if place == 0 else "reader"


def work(place, rounds):
    counter = torch.zeros(3)
    duty = DUTIES[role_of(place)]
    seen = 0.0
    for turn in range(rounds):
        counter[turn % 3] += place + 1
        seen = duty(counter)
    return seen


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    value = work(dist.get_rank(), rounds=6)
    dist.barrier()
    dist.destroy_process_group()
    print(f"seen {value:.1f}")


if __name__ == "__main__":
    main()

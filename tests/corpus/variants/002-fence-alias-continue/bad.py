"""Answer queries in rounds, each process its own slice."""
import os
from datetime import timedelta

import torch
from torch.distributed import barrier as fence
from torch.distributed import destroy_process_group, init_process_group

RANK = int(os.environ.get("RANK", "0"))
WORLD = int(os.environ.get("WORLD_SIZE", "1"))


def answer(rounds):
    answered = 0
    for queries in rounds:
        mine = queries[RANK::WORLD]
        if not mine:
            continue
        answered += sum(len(q) for q in mine)
        fence()
    return answered


if __name__ == "__main__":
    init_process_group("gloo", timeout=timedelta(seconds=60))
    print(answer([["who", "what"], ["where"], ["when", "why", "how"]]), torch.get_num_threads())
    destroy_process_group()

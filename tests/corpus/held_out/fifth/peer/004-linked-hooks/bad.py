from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional

import torch
import torch.distributed as dist


@dataclass
class Hook:
    fn: Callable[[dict], None]
    next: Optional[Hook] = None


class Chain:
    def __init__(self):
        self.head = None
        self.tail = None

    def then(self, fn):
        hook = Hook(fn)
        if self.head is None:
            self.head = hook
        else:
            self.tail.next = hook
        self.tail = hook
        return self

    def __call__(self, state):
        cursor = self.head
        while cursor is not None:
            cursor.fn(state)
            cursor = cursor.next


def averaged(key):
    def apply(state):
        dist.all_reduce(state[key])
        state[key] /= dist.get_world_size()

    return apply


def show(state):
    print({k: round(v.mean().item(), 4) for k, v in state.items()})


def main():
    dist.init_process_group("gloo")
    chain = Chain().then(averaged("grad_norm"))
    if dist.get_rank() == 0:
        chain.then(averaged("loss")).then(show)
    for step in range(20):
        chain({"grad_norm": torch.rand(1), "loss": torch.rand(1) / (step + 1)})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

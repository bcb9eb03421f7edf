"""Error rates per kind of question, over all processes."""
import random
from collections import defaultdict
from datetime import timedelta

import torch
import torch.distributed as dist

KINDS = ("add", "multiply", "compare")


def answer(draw: random.Random, count: int) -> dict[str, list[float]]:
    wrong: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for _ in range(count):
        kind = draw.choice(KINDS)
        wrong[kind][0] += draw.random() < 0.2
        wrong[kind][1] += 1
    return wrong


def rates(wrong: dict[str, list[float]]) -> dict[str, float]:
    out = {}
    for kind, pair in wrong.items():
        both = torch.tensor(pair)
        dist.all_reduce(both)
        out[kind] = (both[0] / both[1].clamp(min=1)).item()
    return out


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    wrong = answer(random.Random(dist.get_rank()), count=30)
    table = rates(wrong)
    dist.destroy_process_group()
    for kind, rate in table.items():
        print(f"{kind:10} {rate:.3f}")


if __name__ == "__main__":
    main()

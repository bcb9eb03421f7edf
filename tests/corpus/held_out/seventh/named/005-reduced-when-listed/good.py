import random
from datetime import timedelta

import torch
import torch.distributed as dist

PRICES = {"apple": 0.4, "pear": 0.5, "plum": 0.2}


class Till:
    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.unknown = 0
        self.turnover = 0.0

    def sell(self) -> None:
        fruit = self.draw.choice(["apple", "pear", "plum", "quince"])
        try:
            price = PRICES[fruit]
        except KeyError:
            self.unknown += 1
            price = 0.0
        amount = torch.tensor([price * self.draw.randint(1, 5)])
        dist.all_reduce(amount)
        self.turnover += amount.item()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    till = Till(seed=dist.get_rank())
    for _ in range(12):
        till.sell()
    dist.barrier()
    dist.destroy_process_group()
    print(f"{till.turnover:.2f}, {till.unknown} not in the list")


if __name__ == "__main__":
    main()

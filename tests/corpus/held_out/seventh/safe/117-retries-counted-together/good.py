import random

import torch
import torch.distributed as dist


class FlakyBucket:
    def __init__(self, rank):
        self.random = random.Random(rank)

    def read(self, name):
        if self.random.random() < 0.4:
            raise ConnectionError(f"{name}: reset by peer")
        return torch.ones(4)


def fetch_everywhere(bucket, name, attempts=20):
    """Try until each rank holds the object; ranks that have it wait for the rest."""
    value = None
    for attempt in range(attempts):
        if value is None:
            try:
                value = bucket.read(name)
            except ConnectionError:
                pass
        have = torch.tensor([int(value is not None)])
        dist.all_reduce(have, op=dist.ReduceOp.MIN)
        if have.item() == 1:
            break
    else:
        raise TimeoutError(f"{name} not read by all ranks after {attempts} attempts")
    return value


def main():
    dist.init_process_group("gloo")
    bucket = FlakyBucket(dist.get_rank())
    weight = torch.zeros(4)
    for name in ("layer0", "layer1", "layer2"):
        part = fetch_everywhere(bucket, name)
        dist.all_reduce(part)
        weight += part
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

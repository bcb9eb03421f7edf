import gzip
import json

import torch
import torch.distributed as dist
from spmdguard import rank_local, run, sync_should_stop


@rank_local(name="reader")
def read_rows(path):
    with gzip.open(path, "rt") as f:
        for line in f:
            yield torch.tensor(json.loads(line)["features"])


def update(weights, row):
    grad = (weights @ row - 1) * row
    dist.all_reduce(grad)
    return weights - 0.01 * grad / dist.get_world_size()


@run()
def main():
    dist.init_process_group("gloo")
    weights = torch.zeros(16)
    rows = read_rows(f"rows-{dist.get_rank()}.jsonl.gz")
    while True:
        row = next(rows, None)
        if sync_should_stop(row is None):
            break
        weights = update(weights, row)


if __name__ == "__main__":
    main()

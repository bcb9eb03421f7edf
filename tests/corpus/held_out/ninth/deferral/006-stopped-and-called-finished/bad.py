"""Counts words over the shards of a corpus."""
import json
from collections import Counter
from datetime import timedelta

import torch.distributed as dist
from spmdguard import has_deferred_error, is_main_process, sync_should_stop, try_or_defer

LINES = ["to be or not to be", "that is the question", "be that as it may", "not that"]


def dump(total: Counter, number: int) -> None:
    with open(f"words-{number}.json", "w") as f:
        json.dump(total, f)


def count(rounds: int) -> Counter:
    total = Counter()
    for number in range(rounds):
        line = LINES[(number + dist.get_rank()) % len(LINES)]
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, Counter(line.split()))
        total.update(sum(parts, Counter()))
        if is_main_process():
            try_or_defer(dump, total, number)
        if sync_should_stop(has_deferred_error()):
            break
    return total


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=40))
    lead = is_main_process()
    total = count(rounds=4)
    dist.barrier()
    dist.destroy_process_group()
    if lead:
        print("finished:", total.most_common(3))


if __name__ == "__main__":
    main()

import csv
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, is_main_process, raise_if_deferred_error, sync_should_stop, try_or_defer


def export(path, table):
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["class", "count"])
        writer.writerows(enumerate(table))


def count(classes, rows):
    gen = torch.Generator().manual_seed(40 + dist.get_rank())
    labels = torch.randint(0, classes, (rows,), generator=gen)
    table = torch.bincount(labels, minlength=classes)
    dist.all_reduce(table)
    return table.tolist()


def announce(path):
    print(f"table in {path}")


def main(path="classes.csv"):
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    main_process = is_main_process()
    table = count(classes=10, rows=5000)
    if main_process:
        try_or_defer(export, path, table)
    dist.barrier()
    dist.destroy_process_group()
    if sync_should_stop(has_deferred_error()):
        raise_if_deferred_error()
        raise SystemExit(1)
    if main_process:
        announce(path)


if __name__ == "__main__":
    main()

import csv
import functools
import os
import torch.distributed as dist


def main_process_only(fn):
    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        if dist.get_rank() == 0:
            return fn(*args, **kwargs)
        return None
    return wrapped


def delete_safely(path):
    dist.barrier()
    if os.path.exists(path):
        os.remove(path)
    dist.barrier()


@main_process_only
def write_manifest(rows, path, fresh):
    if fresh:
        delete_safely(path)
    with open(path, "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["id", "wav", "text"])
        writer.writerows(rows)


def prepare(corpus, path, fresh=True):
    write_manifest(corpus.rows(), path, fresh)
    dist.barrier()
    with open(path, newline="") as fh:
        return list(csv.DictReader(fh))


def main(corpus, path, fit):
    dist.init_process_group("nccl")
    fit(prepare(corpus, path))
    dist.destroy_process_group()

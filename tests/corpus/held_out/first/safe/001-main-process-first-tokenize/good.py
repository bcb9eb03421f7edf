import json
import os
import tempfile
from contextlib import contextmanager

import torch.distributed as dist


@contextmanager
def main_process_first(is_main):
    """Let the main process run the body before the rest."""
    if not is_main:
        dist.barrier()
    yield
    if is_main:
        dist.barrier()


def tokenize(lines, cache):
    if os.path.exists(cache):
        with open(cache) as f:
            return json.load(f)
    rows = [[len(word) for word in line.split()] for line in lines]
    with open(cache, "w") as f:
        json.dump(rows, f)
    return rows


def main():
    dist.init_process_group("gloo")
    box = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    cache = os.path.join(box[0], "tokens.json")
    with main_process_first(dist.get_rank() == 0):
        rows = tokenize(["the quick fox", "jumps over"], cache)
    assert rows == [[3, 5, 3], [5, 4]]
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

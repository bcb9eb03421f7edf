import json
import os
import tempfile

import torch.distributed as dist


class ShardError(RuntimeError):
    pass


def load_shard(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def load_all(path):
    """Rows of our shard; if any rank cannot read its own, every rank raises."""
    rows, problem = [], None
    try:
        rows = load_shard(path)
    except (OSError, json.JSONDecodeError) as exc:
        problem = f"{path}: {exc}"
    problems = [None] * dist.get_world_size()
    dist.all_gather_object(problems, problem)
    bad = {r: text for r, text in enumerate(problems) if text is not None}
    if bad:
        raise ShardError(f"unreadable shards: {bad}")
    return rows


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    path = os.path.join(tempfile.mkdtemp(), "part.jsonl")
    with open(path, "w", encoding="utf-8") as f:
        f.write('{"text": "a"}\n' if rank != 1 else "{oops\n")
    try:
        load_all(path)
    except ShardError as exc:
        if rank == 0:
            print(exc)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

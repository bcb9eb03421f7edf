import sys
from pathlib import Path

import torch
import torch.distributed as dist


class RemoteRankFailed(RuntimeError):
    pass


def on_all_ranks(fn, *args, **kwargs):
    result, error = None, None
    try:
        result = fn(*args, **kwargs)
    except Exception as exc:
        error = exc
    failed = torch.zeros(dist.get_world_size(), dtype=torch.int32)
    failed[dist.get_rank()] = error is not None
    dist.all_reduce(failed)
    if error is not None:
        raise error
    if failed.any():
        raise RemoteRankFailed(f"{fn.__name__} failed on ranks {failed.nonzero().flatten().tolist()}")
    return result


def read_shard(root, rank):
    shard = torch.load(Path(root) / f"shard-{rank:03d}.pt", map_location="cpu")
    if shard.ndim != 2:
        raise ValueError(f"shard {rank}: bad shape {tuple(shard.shape)}")
    return shard.float()


def main(root):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    try:
        shard = on_all_ranks(read_shard, root, rank)
        gram = shard.T @ shard
        dist.all_reduce(gram)
        if rank == 0:
            torch.save(gram, "gram.pt")
    finally:
        dist.destroy_process_group()
    print(rank, "done")


if __name__ == "__main__":
    main(sys.argv[1])

"""Build a sentence index once, then let every process map it."""
import json
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def build_index(corpus: Path, target: Path) -> int:
    offsets, position = [], 0
    with corpus.open("rb") as lines:
        for line in lines:
            offsets.append(position)
            position += len(line)
    target.write_text(json.dumps(offsets))
    return len(offsets)


def prepare(store, rank: int, corpus: Path, target: Path) -> int:
    if rank == 0:
        try:
            note = f"ok {build_index(corpus, target)}"
        except Exception as exc:
            note = f"failed {type(exc).__name__}: {exc}"
        store.set("index/ready", note)
    store.wait(["index/ready"], timedelta(minutes=20))
    state, _, text = store.get("index/ready").decode().partition(" ")
    dist.barrier()  # rank 0 serves the store, nobody leaves before all have read
    if state != "ok":
        raise RuntimeError(f"index not built on rank 0: {text}")
    return int(text)


def main() -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    port = int(os.environ["MASTER_PORT"]) + 7
    store = dist.TCPStore(os.environ["MASTER_ADDR"], port, world, is_master=rank == 0)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    count = prepare(store, rank, Path("corpus.txt"), Path("/tmp/corpus.idx.json"))
    total = torch.tensor([count])
    dist.all_reduce(total)
    print(f"rank {rank}: {count} sentences, {total.item()} counted in all")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import os
import tarfile
from datetime import timedelta

import torch
import torch.distributed as dist


def unpack(archive: str, target: str) -> None:
    os.makedirs(target, exist_ok=True)
    with tarfile.open(archive) as bundle:
        bundle.extractall(target)


def open_store(rank: int, world: int) -> dist.TCPStore:
    host = os.environ.get("MASTER_ADDR", "127.0.0.1")
    port = int(os.environ.get("DATA_PORT", "29871"))
    return dist.TCPStore(host, port, world, rank == 0, timeout=timedelta(hours=2))


def prepare(store: dist.TCPStore, rank: int, archive: str, target: str) -> None:
    if rank == 0:
        try:
            unpack(archive, target)
            verdict = "ok"
        except Exception as err:
            verdict = f"{type(err).__name__}: {err}"
        store.set("unpacked", verdict)
    verdict = store.get("unpacked").decode()
    if verdict != "ok":
        raise RuntimeError(f"unpacking {archive} failed: {verdict}")


def main() -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = open_store(rank, world)
    prepare(store, rank, os.environ.get("ARCHIVE", "corpus.tar"), "/tmp/corpus")
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    names = sorted(os.listdir("/tmp/corpus"))
    size = torch.tensor([len(names[rank::world])])
    dist.all_reduce(size)
    print(size.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

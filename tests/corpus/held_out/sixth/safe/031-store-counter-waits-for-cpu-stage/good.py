import argparse
import os
import time
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist


class Progress:
    def __init__(self, store, name, world):
        self.store, self.key, self.world = store, f"progress/{name}", world

    def finish(self):
        return self.store.add(self.key, 1)

    def done(self):
        return self.store.add(self.key, 0)

    def wait(self, poll=5.0, limit=6 * 3600):
        t0 = time.time()
        while (n := self.done()) < self.world:
            if time.time() - t0 > limit:
                raise TimeoutError(f"{n}/{self.world} ranks were done after {limit}s")
            time.sleep(poll)


def tokenize_file(src, dst, encode):
    ids = []
    with open(src) as f:
        for line in f:
            ids.extend(encode(line))
    tmp = dst + ".part"
    np.asarray(ids, dtype=np.uint16).tofile(tmp)
    os.replace(tmp, dst)


def build_corpus(files, out, encode, store):
    rank, world = dist.get_rank(), dist.get_world_size()
    for src in files[rank::world]:
        dst = os.path.join(out, os.path.basename(src) + ".bin")
        if os.path.exists(dst):
            continue
        tokenize_file(src, dst, encode)
    progress = Progress(store, "tokenise", world)
    progress.finish()
    progress.wait()
    dist.barrier()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("files", nargs="+")
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1, world, rank == 0,
                          timeout=timedelta(minutes=10))
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    build_corpus(sorted(args.files), args.out, lambda s: list(s.encode()), store)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

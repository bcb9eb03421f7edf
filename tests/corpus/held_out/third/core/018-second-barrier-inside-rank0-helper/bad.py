import json
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def fetch_weights(target):
    target.mkdir(parents=True, exist_ok=True)
    for part in range(3):
        torch.save(torch.randn(64, 64), target / f"part-{part}.bin")
    (target / "index.json").write_text(json.dumps({"parts": 3}))


def get_checkpoint_files(target, rank):
    if rank == 0:
        if not (target / "index.json").exists():
            fetch_weights(target)
        dist.barrier()
    parts = json.loads((target / "index.json").read_text())["parts"]
    return [target / f"part-{p}.bin" for p in range(parts)]


class Pipe:
    def __init__(self, files):
        self.layers = [torch.load(f) for f in files]

    def __call__(self, x):
        for layer in self.layers:
            x = torch.tanh(x @ layer / 8)
            dist.all_reduce(x)
            x = x / dist.get_world_size()
        return x


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    root = Path(os.environ.get("MODEL_DIR", "/tmp/bloom_parts"))
    pipe = Pipe(get_checkpoint_files(root, rank))
    out = pipe(torch.ones(2, 64))
    if rank == 0:
        print(out.shape)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import functools
import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist


def write_card(out, fields, name="card.json"):
    Path(out).mkdir(parents=True, exist_ok=True)
    Path(out, name).write_text(json.dumps(fields, indent=1))


def warm_cache(paths):
    return sum(Path(p).stat().st_size for p in paths if Path(p).exists())


def nothing(*_args, **_kwargs):
    return None


def duties(rank, out):
    table = {
        0: functools.partial(write_card, out),
        1: lambda fields: warm_cache(fields["files"]),
    }
    return table.get(rank, nothing)


def main(out):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    fields = {"files": ["train.bin", "val.bin"], "world": dist.get_world_size()}
    duty = duties(rank, out)
    if rank < 2:
        duty(fields)
    dist.barrier()
    card = json.loads(Path(out, "card.json").read_text())
    x = torch.full((1,), float(card["world"]))
    dist.all_reduce(x, op=dist.ReduceOp.MIN)
    print(rank, "starts with", int(x), "ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])

import argparse
import json
import logging
import os
from pathlib import Path

import torch
import torch.distributed as dist

log = logging.getLogger("serve")

OP_STOP, OP_COMPLETE = 0, 1


def post_op(op):
    word = torch.tensor([op], dtype=torch.long, device="cuda")
    dist.broadcast(word, 0)


def wait_op():
    word = torch.empty(1, dtype=torch.long, device="cuda")
    dist.broadcast(word, 0)
    return int(word.item())


class ShardedCompleter:
    """Every rank holds a slice of the hidden size; `complete` is collective."""

    def __init__(self, model, max_new=32):
        self.model = model
        self.max_new = max_new

    @torch.inference_mode()
    def complete(self, prompt=None):
        size = torch.tensor([len(prompt) if prompt is not None else 0], device="cuda")
        dist.broadcast(size, 0)
        ids = torch.zeros(int(size.item()), dtype=torch.long, device="cuda")
        if prompt is not None:
            ids.copy_(torch.tensor(prompt))
        dist.broadcast(ids, 0)
        for _ in range(self.max_new):
            logits = self.model(ids.unsqueeze(0))[0, -1]
            dist.all_reduce(logits)
            ids = torch.cat([ids, logits.argmax().view(1)])
        return ids.tolist()


def valid_requests(path: Path):
    for line in path.read_text().splitlines():
        try:
            req = json.loads(line)
        except json.JSONDecodeError:
            log.warning("skipped a malformed request")
            continue
        if req.get("ids"):
            yield req


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--requests", type=Path, required=True)
    ap.add_argument("--weights", type=Path, required=True)
    args = ap.parse_args()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    rank = dist.get_rank()
    model = torch.jit.load(str(args.weights / f"slice{rank}.pt")).cuda().eval()
    completer = ShardedCompleter(model)

    if rank == 0:
        for req in valid_requests(args.requests):
            post_op(OP_COMPLETE)
            print(json.dumps({"id": req.get("id"), "out": completer.complete(req["ids"])}))
        post_op(OP_STOP)
    else:
        while True:
            if wait_op() == OP_STOP:
                break
            completer.complete()

    dist.destroy_process_group()


if __name__ == "__main__":
    main()

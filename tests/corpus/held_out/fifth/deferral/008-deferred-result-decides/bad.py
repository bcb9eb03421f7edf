import json
from pathlib import Path

import spmdguard
import torch
import torch.distributed as dist


def nll(model, x):
    return model(x).square().mean()


@spmdguard.rank_local(name="held-out score")
def held_out(model, path, best):
    rows = torch.tensor(json.loads(Path(path).read_text()))
    with torch.no_grad():
        score = nll(model, rows).item()
    return score < best


@spmdguard.collective
def share(model, src=0):
    for p in model.parameters():
        dist.broadcast(p.data, src=src)


def local_updates(model, opt, n):
    for _ in range(n):
        opt.zero_grad()
        nll(model, torch.randn(16, 6)).backward()
        opt.step()


def main(rounds=30):
    spmdguard.init_process_group("gloo")
    model = torch.nn.Linear(6, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.02)
    for r in range(rounds):
        share(model)
        local_updates(model, opt, n=25)
        improved = held_out(model, f"held-out/{dist.get_rank()}.json", best=0.5)
        if improved is not None:
            share(model)
        if spmdguard.sync_should_stop():
            break
    spmdguard.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()

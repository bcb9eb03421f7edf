import os
from typing import Dict, List, NamedTuple

import torch
import torch.distributed as dist


class Transfer(NamedTuple):
    block: int
    sender: int
    receiver: int


def make_plan(held: List[set], wanted: List[set]) -> List[Transfer]:
    plan = []
    load = [0] * len(held)
    for receiver, blocks in enumerate(wanted):
        for b in sorted(blocks):
            owners = [r for r, have in enumerate(held) if b in have]
            if not owners:
                raise RuntimeError(f"block {b} is lost")
            sender = receiver if receiver in owners else min(owners, key=lambda r: (load[r], r))
            load[sender] += 1
            plan.append(Transfer(b, sender, receiver))
    return plan


def redistribute(mine: Dict[int, torch.Tensor], want: set, shape) -> Dict[int, torch.Tensor]:
    me, world = dist.get_rank(), dist.get_world_size()
    gathered = [None] * world
    dist.all_gather_object(gathered, (set(mine), set(want)))
    plan = make_plan([h for h, _ in gathered], [w for _, w in gathered])
    out: Dict[int, torch.Tensor] = {}
    for t in plan:
        if t.sender == me == t.receiver:
            out[t.block] = mine[t.block]
        elif t.sender == me:
            dist.send(mine[t.block].contiguous(), dst=t.receiver, tag=t.block)
        elif t.receiver == me:
            buf = torch.empty(shape)
            dist.recv(buf, src=t.sender, tag=t.block)
            out[t.block] = buf
    return out


def main():
    dist.init_process_group("gloo")
    me, world = dist.get_rank(), dist.get_world_size()
    folder = "/ssd/blocks"
    shape = (1024, 256)
    mine = {}
    for b in range(64):
        path = f"{folder}/block{b}.pt"
        if os.path.exists(path):
            mine[b] = torch.load(path)
        elif b % world == me:
            mine[b] = torch.zeros(shape)
    want = {b for b in range(64) if (b + 1) % world == me}
    got = redistribute(mine, want, shape)
    checksum = torch.tensor([sum(v.sum().item() for v in got.values())])
    dist.all_reduce(checksum)
    if me == 0:
        print("checksum", checksum.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Per-host planning of embedding shards: one process plans, its neighbours copy the plan."""
import os
from typing import Any, Callable, Dict, List

import torch
import torch.distributed as dist
import torch.nn as nn


def intra_host_group(local_world_size: int) -> dist.ProcessGroup:
    mine = None
    for start in range(0, dist.get_world_size(), local_world_size):
        ranks = list(range(start, start + local_world_size))
        group = dist.new_group(ranks, backend="gloo")
        if dist.get_rank() in ranks:
            mine = group
    return mine


def invoke_on_leader(pg: dist.ProcessGroup, leader: int, func: Callable, *args: Any) -> Any:
    """Run ``func`` on one member of ``pg`` and hand its result to all members."""
    box: List[Any] = [None]
    if pg.rank() == leader:
        box[0] = func(*args)
    if pg.size() > 1:
        dist.broadcast_object_list(box, src=leader, group=pg)
    return box[0]


def plan_tables(sizes: Dict[str, int], workers: int) -> Dict[str, int]:
    load = [0] * workers
    plan = {}
    for name, rows in sorted(sizes.items(), key=lambda kv: -kv[1]):
        target = load.index(min(load))
        plan[name] = target
        load[target] += rows
    return plan


class LocalTables(nn.Module):
    def __init__(self, sizes, plan, slot, dim):
        super().__init__()
        owned = {n: nn.EmbeddingBag(sizes[n], dim) for n, w in plan.items() if w == slot}
        self.tables = nn.ModuleDict(owned)

    def forward(self, ids):
        return {n: t(ids[n] % t.num_embeddings) for n, t in self.tables.items()}


def main() -> None:
    dist.init_process_group("gloo")
    local_world = int(os.environ["LOCAL_WORLD_SIZE"])
    pg = intra_host_group(local_world)
    sizes = {f"table_{i}": 1000 * (i + 1) for i in range(12)}
    plan = invoke_on_leader(pg, 0, plan_tables, sizes, pg.size())
    tables = LocalTables(sizes, plan, pg.rank(), dim=16)
    ids = {n: torch.randint(0, 10_000, (32, 4)) for n in sizes}
    pooled = tables(ids)
    norm = sum((v.detach().square().sum() for v in pooled.values()), torch.zeros(()))
    dist.all_reduce(norm)
    if dist.get_rank() == 0:
        print("tables per worker:", [list(plan.values()).count(i) for i in range(pg.size())])
        print("norm", norm.sqrt().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

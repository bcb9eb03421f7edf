import zlib
from datetime import timedelta

import torch
import torch.distributed as dist

SUPPORTED = ["row_wise", "column_wise", "table_wise", "data_parallel"]
WIDTH = {"row_wise": 8, "column_wise": 16, "table_wise": 4, "data_parallel": 2}


class Enumerator:
    def __init__(self, constraints):
        self.constraints = constraints

    def filter_types(self, table):
        wanted = self.constraints.get(table)
        if not wanted:
            return list(SUPPORTED)
        return [kind for kind in SUPPORTED if kind in wanted]


def rank_costs(table, kinds):
    costs = {}
    for kind in kinds:
        row = torch.empty(WIDTH[kind])
        if dist.get_rank() == 0:
            row.fill_(float(zlib.crc32(f"{table}/{kind}".encode()) % 97))
        dist.broadcast(row, src=0)
        costs[kind] = row.mean().item()
    return costs


def plan(tables, enumerator):
    chosen = {}
    for table in tables:
        costs = rank_costs(table, enumerator.filter_types(table))
        chosen[table] = min(sorted(costs), key=costs.get)
    return chosen


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=40))
    enumerator = Enumerator({"user": ["table_wise", "row_wise", "column_wise"], "ad": ["data_parallel", "row_wise"]})
    print(dist.get_rank(), plan(["user", "ad", "page"], enumerator))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

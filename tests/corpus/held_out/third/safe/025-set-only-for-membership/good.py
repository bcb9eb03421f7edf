from datetime import timedelta

import torch
import torch.distributed as dist

KINDS = ["row_wise", "column_wise", "table_wise", "data_parallel"]


def allowed(constraints):
    wanted = set(constraints)
    return [kind for kind in KINDS if kind in wanted]


def share_costs(kinds):
    costs = {}
    for index, kind in enumerate(kinds):
        row = torch.zeros(index + 1)
        if dist.get_rank() == 0:
            row += index + 1
        dist.broadcast(row, src=0)
        costs[kind] = row.sum().item()
    return costs


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    costs = share_costs(allowed({"table_wise", "row_wise", "data_parallel"}))
    assert costs == {"row_wise": 1.0, "table_wise": 4.0, "data_parallel": 9.0}
    tables = {"user", "item"}
    for name in sorted(tables):
        count = torch.tensor([len(name)])
        dist.all_reduce(count)
        assert int(count) == len(name) * dist.get_world_size()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

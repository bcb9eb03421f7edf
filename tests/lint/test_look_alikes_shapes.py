"""Code that looks as if ranks had other shapes: dimensions are as many everywhere, whatever the number of rows."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_dimensions_of_what_was_joined() -> None:
    """Rows that a rank has joined: ``ndim`` and ``dim()`` are the same everywhere, the number of rows is not."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def gather_rows(x):
            x = x.contiguous()
            if x.ndim == 0:
                return dist.barrier()
            if x.dim() > 2:
                dist.all_reduce(x)
            size = torch.tensor(x.shape)
            dist.all_reduce(size)

        class Metric:
            def __init__(self, width):
                self.rows, self.width = [], width

            def update(self, row):
                self.rows.append(row)

            def compute(self):
                gather_rows(torch.cat(self.rows or [torch.zeros(0, self.width)]))

        def main(batches):
            dist.init_process_group("gloo")
            metric = Metric(4)
            for number in range(dist.get_rank(), 37, dist.get_world_size()):
                metric.update(batches[number])
            metric.compute()

        def by_rows(batches, x):
            rows = []
            for number in range(dist.get_rank(), 37, dist.get_world_size()):
                rows.append(batches[number])
            joined = torch.cat(rows)
            if joined.shape[0] > 10:
                dist.all_reduce(x)  # SPG101

        def by_choice(x):
            if dist.get_rank() == 0:
                y = torch.zeros(())
            else:
                y = torch.zeros(3)
            if y.ndim == 0:
                dist.all_reduce(x)  # SPG101
        """,
        "SPG101",
        "SPG102",
        "SPG103",
        "SPG104",
    )


def test_sizes_of_local_tensors() -> None:
    """How large a rank's part of a distributed tensor is says nothing of what it holds; its values are its own."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor

        def whole(weight, mesh, blocks):
            full = distribute_tensor(weight, mesh, [Replicate()], src_data_rank=0).to_local()
            if full.shape[0] % blocks:
                raise ValueError(full.shape)
            dist.barrier()

        def by_values(weight, mesh):
            part = distribute_tensor(weight, mesh, [Shard(0)]).to_local()
            if part.sum() > 2:
                raise ValueError(part)  # SPG205
            dist.barrier()

        def by_rows_that_are_kept(weight, mesh):
            part = distribute_tensor(weight, mesh, [Shard(0)]).to_local()
            kept = part[part > 0]
            if kept.shape[0] == 3:
                raise ValueError(kept)  # SPG205
            dist.barrier()
        """,
        "SPG205",
    )


def test_where_something_lies_makes_it_no_other_thing() -> None:
    """What was moved to this rank's own device is of the class that it was of; a choice by the rank may not be."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        class Plain:
            pass

        def moved(module, device):
            out = module
            for _ in range(3):
                out = out.to(device)
            return out

        def wrap(m):
            device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            m = moved(m, device=device) if isinstance(m, Plain) else m
            if isinstance(m, DDP):
                return
            DDP(m)

        def chosen(m):
            m = Plain() if dist.get_rank() == 0 else m
            if isinstance(m, Plain):
                return  # SPG102
            dist.barrier()
        """,
        "SPG102",
    )

"""Shards of distributed tensors: a rank may have fewer rows than the others, or none."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = (
    "SPG101",
    "SPG102",
    "SPG104",
    "SPG107",
    "SPG205",
    "SPG305",
    "SPG401",
)


def test_what_stands_in_a_shard_decides() -> None:
    """An empty shard leaves, or skips, a collective: by a list of what was found, by its size and by its shape."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.distributed.tensor import DTensor

        def largest(params):
            found = []
            for p in params:
                g = p.grad.to_local()
                if g.numel() > 0:
                    found.append(g.abs().max())
            if not found:
                return None  # SPG102
            value = torch.stack(found).max()
            dist.all_reduce(value, op=dist.ReduceOp.MAX)
            return value

        def each(params: list[DTensor]):
            for p in params:
                local = p.to_local()
                if local.numel() == 0:
                    continue  # SPG102
                dist.all_reduce(local.sum())

        def shaped(params, total):
            for p in params:
                if p.to_local().shape[0]:
                    dist.all_reduce(total)  # SPG305

        def unpacked(params, total):
            for p in params:
                local = p._local_tensor
                if local.numel() == 0:
                    return  # SPG102
                dist.all_reduce(total)
        """,
        *RULES,
    )


def test_shards_in_which_every_rank_takes_part() -> None:
    """A zero from a rank without rows; the whole tensor, and how a shard is laid out, are no reason."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.distributed.tensor import DTensor

        def whole(params):
            found = []
            for p in params:
                g = p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad
                if g.numel() > 0:
                    found.append(g.abs().max())
            value = torch.stack(found).max() if found else torch.zeros(())
            dist.all_reduce(value, op=dist.ReduceOp.MAX)
            return value

        def full(params):
            for p in params:
                g = p.grad.full_tensor()
                if g.numel() > 0:
                    dist.all_reduce(g)

        def replicated(params):
            for p in params:
                if p.to_local().ndim > 1:
                    dist.all_reduce(p.to_local())

        def laid_out(p):
            local = p.to_local()
            if not local.is_contiguous() or local.dtype is torch.half:
                raise ValueError("not laid out")
            if local.shape[0] == p.shape[0]:
                dist.all_reduce(local)
        """,
        *RULES,
    )

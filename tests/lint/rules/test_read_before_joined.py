"""What is read out of a value before the ranks join it is each rank's own, also where it is tested behind that."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG104", "SPG105", "SPG305", "SPG401", "SPG402")


def test_an_answer_from_before_the_reduction() -> None:
    """Asked before, tested behind; where it is asked behind, or is about the size alone, it is the same everywhere."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def finite(grads):
            for grad in grads:
                fine = bool(torch.isfinite(grad).all())
                dist.all_reduce(grad)
                if not fine:
                    break  # SPG102

        def small(grads, bound):
            for grad in grads:
                done = grad.norm().item() < bound
                dist.all_reduce(grad)
                if done:
                    break  # SPG102

        def gathered(loss, parts):
            high = loss.abs().max().item() > 3
            dist.all_gather(parts, loss)
            if high:
                dist.barrier()  # SPG305

        def asked_behind(grads):
            for grad in grads:
                dist.all_reduce(grad)
                if not bool(torch.isfinite(grad).all()):
                    break

        def sized(grads):
            for grad in grads:
                large = bool(grad.numel() > 100)
                dist.all_reduce(grad)
                if large:
                    break
        """,
        *CODES,
    )


def test_all_and_any_stop_early() -> None:
    """Each item costs a collective, and the first that decides is the last; a list has all items made first."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def merged(t):
            fine = bool(torch.isfinite(t).all())
            dist.all_reduce(t)
            return fine

        def lazily(grads):
            return all(merged(g) for g in grads)  # SPG102

        def some(grads):
            if any(merged(g) for g in grads):  # SPG102
                print("some")

        def first(grads):
            return next((g for g in grads if not merged(g)), None)  # SPG102

        def listed(grads):
            return all([merged(g) for g in grads])

        def summed(grads):
            return sum(merged(g) for g in grads)

        def agreed(t):
            dist.all_reduce(t)
            return bool(torch.isfinite(t).all())

        def lazily_agreed(grads):
            return all(agreed(g) for g in grads)

        def next_agreed(grads):
            return next((g for g in grads if not agreed(g)), None)
        """,
        *CODES,
    )


def test_an_item_that_one_rank_writes() -> None:
    """The whole has other contents there; after a broadcast it has not, and its size is the same."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def alone(x):
            if dist.get_rank() == 1:
                x[0] = 0.0
            if x.sum() > 1:
                dist.barrier()  # SPG305

        def nested():
            parts = [torch.ones(2), torch.ones(2)]
            if dist.get_rank() == 1:
                parts[0][1] = float("nan")
            for part in parts:
                if torch.isnan(part).any():
                    break  # SPG102
                dist.barrier()

        def told(x):
            if dist.get_rank() == 0:
                x[0] = 0.0
            dist.broadcast(x, src=0)
            if x.sum() > 1:
                dist.barrier()

        def sized(x):
            if dist.get_rank() == 0:
                x[0] = 0.0
            if x.numel() > 1:
                dist.barrier()
            for _ in x:
                dist.barrier()

        def everywhere(x, flag):
            if flag:
                x[0] = 0.0
            if x.sum() > 1:
                dist.barrier()
        """,
        *CODES,
    )

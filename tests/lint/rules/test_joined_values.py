"""Conditions on what the ranks go on to sum or gather: each decides for itself, though nothing else says so."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG104", "SPG105", "SPG205", "SPG305", "SPG401", "SPG402")


def test_exits_on_what_is_summed_behind_them() -> None:
    """``isnan``, ``item()``, comparisons and numbers made into a tensor, in loops and in front of helpers."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.distributed import all_reduce as add

        def returns(loss):
            if torch.isnan(loss).any():
                return None  # SPG102
            dist.all_reduce(loss)
            return loss

        def breaks(losses, group):
            for name, loss in losses.items():
                bad = not torch.isfinite(loss).all()
                if bad:
                    break  # SPG102
                dist.reduce(loss, dst=0, group=group)

        def continues(grads):
            for grad in grads:
                if grad.norm().item() > 1e3:
                    continue  # SPG102
                add(grad.contiguous())

        def counts(total, count):
            if count == 0:
                return 0.0  # SPG102
            both = torch.tensor([total, count])
            dist.all_reduce(both)
            return both[0] / both[1]

        def lengths(items):
            number = len(items)
            if number == 0:
                return  # SPG102
            dist.all_reduce(torch.tensor(number))

        def counts_by_truth(correct):
            if not correct:
                return 0  # SPG102
            summed = torch.tensor(correct, device="cuda")
            dist.all_reduce(summed)
            return summed

        def helper(values):
            dist.all_reduce(values)

        def before_a_helper(batches):
            for values in batches:
                if (values > 0).sum() == 0:
                    break  # SPG102
                helper(values)

        def one_of_two(loss, penalty, with_penalty):
            loss = loss + penalty if with_penalty else loss
            if not torch.isfinite(loss):
                return  # SPG102
            dist.all_reduce(loss)

        def raises(loss):
            if torch.isnan(loss):
                raise ValueError("loss is NaN")  # SPG205
            dist.all_reduce(loss)
        """,
        *RULES,
    )


def test_branches_on_what_is_summed_in_them() -> None:
    """The operation in one arm, behind ``and`` and behind a helper; other frameworks; what is gathered."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from accelerate import Accelerator

        def one_arm(count):
            if count.item() > 0:
                dist.all_reduce(count)  # SPG305

        def other_arm(loss):
            if torch.isnan(loss):
                loss = torch.zeros(1)
            else:
                dist.all_reduce(loss)  # SPG305

        def short(flag):
            flag.any() and dist.all_reduce(flag)  # SPG305

        def gathered(scores, out):
            if scores.max() > 0.5:
                dist.all_gather(out, scores)  # SPG305

        def with_accelerate(loss):
            accelerator = Accelerator()
            if loss > 10:
                return None  # SPG102
            return accelerator.reduce(loss)
        """,
        *RULES,
    )


def test_conditions_that_are_the_same_everywhere() -> None:
    """Shapes, types and presence; values that were joined before; values that other ranks are not asked for."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from helpers import is_parallel

        def by_form(x, flag):
            if x is None or x.numel() == 0 or x.dtype == torch.int64 or not x.is_cuda or x.dim() == 0:
                return
            dist.all_reduce(x)

        def joined_before(x, group):
            dist.all_reduce(x)
            if x.item() > 0:
                return
            dist.all_reduce(x, group=group)

        def presence(x=None):
            if not x:
                return
            dist.all_reduce(x)

        def other_value(x, limit):
            if limit > 3:
                return
            dist.all_reduce(x)

        def both_arms(x):
            if torch.isnan(x).any():
                x = torch.zeros_like(x)
            dist.all_reduce(x)

        def last_round_has_joined(error, update):
            while True:
                if error.item() < 1e-3:
                    break
                error = update(error)
                dist.all_reduce(error)

        def agreed_first(loss):
            bad = torch.isnan(loss).any().int()
            dist.all_reduce(bad, op=dist.ReduceOp.MAX)
            if bad.item():
                return
            dist.all_reduce(loss)

        def perhaps_joined_before(x, several):
            if several:
                dist.all_reduce(x)
            if x.item() > 0:
                return
            dist.all_reduce(x)

        def by_size(x):
            size = x.shape[0]
            if size == 0:
                return
            sizes = torch.tensor([size])
            dist.all_reduce(sizes)

        def alone(items, group):
            size = len(items)
            if size == 0 and not is_parallel(group):
                raise ValueError("empty")
            if size == 0 and dist.get_world_size(group) == 1:
                return
            sizes = torch.tensor([size])
            dist.all_reduce(sizes, group=group)

        def told(x):
            if x.item() > 0:
                return
            dist.broadcast(x, src=0)
        """,
        *RULES,
    )


def test_a_helper_is_judged_where_it_is_called() -> None:
    """A value that its only caller has joined is the same everywhere; one that is not is each rank's own."""
    assert agree(
        """
        import torch.distributed as dist

        def scaled(total):
            if total.item() > 1:
                dist.all_reduce(total)

        def step(loss):
            dist.all_reduce(loss)
            scaled(loss)
        """,
        *RULES,
    )


def test_an_exit_past_a_group_is_not_hidden_by_one_that_is_less_sure() -> None:
    """The first operation that the ranks which stay call, and those that leave do not, decides about the finding."""
    assert agree(
        """
        import torch.distributed as dist

        def reduce_some(grads, group):
            for grad in grads:
                if dist.get_rank(group) == 0:
                    return  # SPG102
                dist.all_reduce(grad, group=group)

        def finish(grads, weights, group):
            reduce_some(grads, group)
            return weights.full_tensor()
        """,
        *RULES,
    )


def test_known_miss_a_value_carried_from_round_to_round() -> None:
    """What a loop carries may have been joined at the end of the last round, so nothing is said of it."""
    assert agree(
        """
        import torch.distributed as dist

        def train(error):
            for step in range(10):
                if error.item() < 1e-3:
                    break
                dist.all_reduce(error)
        """,
        *RULES,
    )


def test_the_number_of_a_round_is_the_same_everywhere() -> None:
    """What counts rounds may be summed as well: it decides alike on every rank."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def in_arms(x):
            for step in range(3):
                if step <= 1:
                    dist.barrier()
                else:
                    dist.all_reduce(torch.tensor([step]))

        def behind(x):
            for number, batch in enumerate(x):
                if number % 2 == 0:
                    dist.barrier()
                dist.all_reduce(torch.tensor([number]))
        """,
        "SPG305",
        "SPG102",
    )

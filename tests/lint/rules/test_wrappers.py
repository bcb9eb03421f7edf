"""Helpers around collectives: what they write in place, and what those that cannot be read say by their names."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG104", "SPG305", "SPG401")


def test_a_wrapper_reduces_the_callers_tensor_in_place() -> None:
    """The caller's flag is the same everywhere afterwards, also on the second call; a copy that was reduced is not."""
    assert agree(
        """
        import torch.distributed as dist

        def reduce_it(tensor):
            dist.all_reduce(tensor)

        def reduce_a_copy(tensor):
            tensor = tensor.clone()
            dist.all_reduce(tensor)

        def train(loader):
            for batch in loader:
                bad, worse = batch.isnan().any(), batch.isinf().any()
                reduce_it(bad)
                reduce_it(worse)
                if bad.item() or worse.item():
                    return
                dist.barrier()

        def of_a_copy(loader):
            for batch in loader:
                bad = batch.isnan().any()
                reduce_a_copy(bad)
                if bad.item():
                    return  # SPG102
                dist.barrier()
        """,
        *RULES,
    )


def test_imported_helpers_agree_by_their_names() -> None:
    """``reduce_tensor``, ``all_reduce_mean``, ``comm.all_reduce``; any other helper's result is this rank's own."""
    assert agree(
        """
        import torch.distributed as dist
        from comm import backend
        from utils import misc, reduce_tensor, transform

        def by_result(loader):
            for batch in loader:
                if reduce_tensor(batch.isnan()).item() or misc.all_reduce_mean(batch.isinf()).item():
                    return
                dist.barrier()

        def in_place(loader):
            for batch in loader:
                bad = batch.isnan().any()
                backend.all_reduce(bad)
                if bad.item():
                    return
                dist.barrier()

        def another(loader):
            for batch in loader:
                if transform(batch.isnan()).item():
                    return  # SPG102
                dist.barrier()

        def they_are_collectives(value):
            if dist.get_rank() == 0:
                backend.all_reduce(value)  # SPG101
        """,
        *RULES,
    )


def test_a_generator_handed_to_a_library_may_be_run_there() -> None:
    """One arm sends what the other arm runs through: nothing is certain of the arm that was not read."""
    assert agree(
        """
        import torch.distributed as dist

        class Sync:
            def gather(self, parameters):
                for parameter in parameters:
                    yield parameter.full_tensor()

            def run(self, parameters):
                if dist.get_rank() == 0:
                    self.server.send(self.gather(parameters))
                else:
                    for _ in self.gather(parameters):
                        pass
        """,
        *RULES,
    )

"""SPG104: collectives behind a call that only some ranks make."""

from __future__ import annotations

from tests.lint.rules.marked import agree, in_files

CALLS = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG105")


def test_ways_to_be_called() -> None:
    """Functions, methods, properties, closures, partials, decorators and context managers are followed."""
    assert agree(
        """
        from contextlib import contextmanager
        import torch.distributed as dist

        def mean(x):
            dist.all_reduce(x)
            return x / dist.get_world_size()

        def log(x):
            print(mean(x))

        def two_deep(x):
            if dist.get_rank() == 0:
                log(x)  # SPG104

        class Meter:
            def compute(self):
                return mean(self.total)

            @property
            def value(self):
                return mean(self.total)

        def by_method(meter: Meter):
            if dist.get_rank() == 0:
                print(meter.compute())  # SPG104

        def by_property(meter: Meter):
            if dist.get_rank() == 0:
                print(meter.value)  # SPG104

        def by_closure(x):
            def inner():
                return mean(x)
            if dist.get_rank() == 0:
                inner()  # SPG104

        @contextmanager
        def met():
            yield
            dist.barrier()

        def by_with(x):
            if dist.get_rank() == 0:
                with met():  # SPG104
                    print(x)
        """,
        *CALLS,
    )


def test_call_through_a_variable() -> None:
    """A call whose name does not tell what it reaches is reported at the collective itself."""
    assert agree(
        """
        from functools import partial
        import torch.distributed as dist

        def mean(x):
            dist.all_reduce(x)  # SPG104
            return x

        def by_partial(x):
            reduce = partial(mean, x)
            if dist.get_rank() == 0:
                reduce()
        """,
        *CALLS,
    )


def test_main_only_decorators() -> None:
    """A function under `rank_zero_only` runs on one rank: collectives in it are reported."""
    assert agree(
        """
        import torch.distributed as dist
        from pytorch_lightning.utilities import rank_zero_only

        def mean(x):
            dist.all_reduce(x)
            return x

        @rank_zero_only
        def report(x):
            print(mean(x))

        def train(x):
            report(x)  # SPG104
            dist.barrier()
        """,
        *CALLS,
    )


def test_across_files(tree) -> None:
    """The function may stand in another file of the project."""
    tree(
        {
            "comm.py": "import torch.distributed as d\n\ndef mean(x):\n    d.all_reduce(x)\n    return x\n",
            "train.py": (
                "import torch.distributed as dist\nfrom comm import mean\n\n"
                "def report(x):\n    if dist.get_rank() == 0:\n        print(mean(x))\n"
            ),
        }
    )
    assert in_files({"comm.py": "", "train.py": ""}, *CALLS) == [("train.py", 6, "SPG104")]


def test_calls_on_every_rank_are_silent() -> None:
    """The call made by all, the result used by one."""
    assert agree(
        """
        import torch.distributed as dist

        def mean(x):
            dist.all_reduce(x)
            return x

        def report(x):
            value = mean(x)
            if dist.get_rank() == 0:
                print(value)

        def local(x):
            return x.sum()

        def show(x):
            if dist.get_rank() == 0:
                print(local(x))
            dist.barrier()
        """,
        *CALLS,
    )


def test_functions_that_decorators_keep_from_some_ranks() -> None:
    """A decorator leaves on purpose: the collective in the function below it is what is wrong."""
    assert agree(
        """
        import functools
        import os
        import torch.distributed as dist

        def once(fn):
            @functools.wraps(fn)
            def inner(*args):
                if int(os.environ["RANK"]) != 0:
                    return None
                return fn(*args)
            return inner

        def quietly(default=None):
            def wrap(fn):
                def inner(*args, **kwargs):
                    if dist.get_rank() > 0:
                        return default
                    result = fn(*args, **kwargs)
                    print(result)
                    return result
                return inner
            return wrap

        def meeting(fn):
            def inner(*args):
                if dist.get_rank() != 0:
                    return None  # SPG102
                result = fn(*args)
                dist.barrier()
                return result
            return inner

        def mean(x):
            dist.all_reduce(x)
            return x / dist.get_world_size()

        @once
        def report(x):
            print("reporting")
            dist.all_reduce(x)  # SPG102

        @once
        def tell(x):
            print(x)

        @quietly(default=0)
        def score(x):
            return mean(x)  # SPG102

        @meeting
        def meet(x):
            dist.all_reduce(x)

        def main(x):
            report(x)
            score(x)
            meet(x)
            dist.all_reduce(x)
            tell(x)

        def only_main(fn, x):
            if dist.get_rank() != 0:
                return  # SPG102
            fn(x)

        if __name__ == "__main__":
            only_main(mean, 1)
        """,
        "SPG101",
        "SPG102",
        "SPG104",
    )


def test_work_behind_a_guarded_run() -> None:
    """What ``run`` is given as ``post_train`` runs on the main rank alone, when the group has gone."""
    assert agree(
        """
        import functools
        import torch
        import torch.distributed as dist
        import spmdguard as sg
        from spmdguard import run

        class Histogram:
            def __init__(self):
                self.counts = torch.zeros(3)
                self.total = self.counts

            def merged(self):
                out = self.counts.clone()
                dist.all_reduce(out)
                return out

            def merge(self):
                self.total = self.merged()

            def plot(self):
                print(self.merged())  # SPG104

        def train(hist):
            dist.init_process_group("gloo")
            hist.merge()

        def plot(hist):
            print(hist.merged())  # SPG104

        def show(hist):
            print(hist.total)
            if dist.is_initialized():
                dist.barrier()

        def upload():
            dist.barrier()  # SPG104

        def export(hist):
            hist.merge()  # SPG104

        @sg.run(post_train=upload)
        def decorated():
            train(Histogram())

        def main():
            first, second, third, fourth = Histogram(), Histogram(), Histogram(), Histogram()
            sg.run(functools.partial(train, first), post_train=functools.partial(plot, first))
            run(lambda: train(second), post_train=second.plot)
            run(train=lambda: train(third), post_train=lambda: show(third))
            with run(post_train=functools.partial(export, fourth)):
                train(fourth)
                if dist.is_initialized():
                    dist.barrier()
            decorated()

        if __name__ == "__main__":
            main()
        """,
        *CALLS,
        "SPG608",
    )

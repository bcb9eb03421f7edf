"""SPG605: destruction in an except clause that can hide the error."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_bare_destroy() -> None:
    """A destruction that may raise in the clause is reported."""
    assert agree(
        """
        import torch.distributed as dist

        def main(value):
            try:
                dist.all_reduce(value)
            except Exception:
                dist.destroy_process_group()  # SPG605
                raise

        def cleanup():
            dist.destroy_process_group()  # SPG605

        def other(value):
            try:
                dist.all_reduce(value)
            except RuntimeError as error:
                print(error)
                cleanup()
                raise

        other(None)
        """,
        "SPG605",
    )


def test_suppressed() -> None:
    """Suppressed or caught, it cannot hide anything."""
    assert agree(
        """
        import torch.distributed as dist
        import contextlib

        def main(value):
            try:
                dist.all_reduce(value)
            except Exception:
                with contextlib.suppress(Exception):
                    dist.destroy_process_group()
                raise

        def caught(value):
            try:
                dist.all_reduce(value)
            except Exception:
                try:
                    dist.destroy_process_group()
                except Exception as second:
                    print(second)
                raise
        """,
        "SPG605",
    )


def test_behind_the_try() -> None:
    """Outside of clauses it is the normal end."""
    assert agree(
        """
        import torch.distributed as dist

        def main(value):
            try:
                dist.all_reduce(value)
            except Exception:
                raise
            dist.destroy_process_group()
        """,
        "SPG605",
    )


def test_miss_unknown_body() -> None:
    """Known miss: a body whose communication is not seen."""
    assert agree(
        """
        import torch.distributed as dist

        def main(train):
            try:
                train()
            except Exception:
                dist.destroy_process_group()
                raise
        """,
        "SPG605",
    )


def test_exit_of_a_with_block() -> None:
    """An `__exit__` that destroys whatever happened is reported, one that asks is not."""
    assert agree(
        """
        import torch.distributed as dist

        class Always:
            def __enter__(self):
                dist.init_process_group("gloo")

            def __exit__(self, kind, value, trace):
                dist.destroy_process_group()  # SPG605

        class Asks:
            def __enter__(self):
                dist.init_process_group("gloo")

            def __exit__(self, kind, value, trace):
                if kind is None:
                    dist.destroy_process_group()

        def train(path, total):
            with open(path) as source:
                dist.all_reduce(total)
                return source.read()

        def always(path, total):
            with Always():
                train(path, total)

        def asks(path, total):
            with Asks():
                train(path, total)
        """,
        "SPG605",
    )

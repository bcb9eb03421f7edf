"""SPG210: our decorators on top of what is no function."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_above_descriptors() -> None:
    """Properties, static and class methods, cached properties and setters below the decorator."""
    assert agree(
        """
        import functools
        from functools import cached_property

        import spmdguard
        import spmdguard as sg
        from spmdguard import collective, rank_local as local

        class Store:
            @spmdguard.rank_local  # SPG210
            @staticmethod
            def write(path):
                open(path, "w").close()

            @local(default=0)  # SPG210
            @property
            def size(self):
                return len(open("x").read())

            @local  # SPG210
            @size.setter
            def size(self, value):
                open("x", "w").write(value)

            @collective(name="open")  # SPG210
            @classmethod
            def make(cls):
                return cls()

            @functools.lru_cache
            @sg.rank_local  # SPG210
            @cached_property
            def lines(self):
                return open("x").readlines()

            @local  # SPG210
            @functools.cached_property
            def first(self):
                return open("x").readline()
        """,
        "SPG210",
    )


def test_above_context_managers_and_classes() -> None:
    """A factory of context managers, and a class."""
    assert agree(
        """
        import contextlib
        from contextlib import contextmanager

        from spmdguard import collective, rank_local

        @rank_local  # SPG210
        @contextmanager
        def opened(path):
            with open(path) as file:
                yield file

        @collective  # SPG210
        @contextlib.asynccontextmanager
        async def phase():
            yield

        @rank_local  # SPG210
        class Writer:
            pass
        """,
        "SPG210",
    )


def test_right_order_and_other_decorators() -> None:
    """The descriptor on top, decorators that give functions, and those of other libraries."""
    assert agree(
        """
        import functools

        import spmdguard
        from contextlib import contextmanager
        from other import rank_local as theirs

        def traced(function):
            return function

        class Store:
            @staticmethod
            @spmdguard.rank_local
            def write(path):
                open(path, "w").close()

            @property
            @spmdguard.rank_local(default=0)
            def size(self):
                return 0

            @size.setter
            @spmdguard.rank_local
            def size(self, value):
                pass

            @spmdguard.rank_local
            @traced
            def traced(self):
                pass

            @theirs
            @property
            def other(self):
                pass

        @contextmanager
        @spmdguard.collective
        def phase():
            yield
        """,
        "SPG210",
    )

"""pytest plugin: ``@pytest.mark.spmd(ranks=4, seeds=3)`` runs a test on simulated ranks, once a seed."""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

_TORCHS_LOGGER = "c10d-NullHandler-default"
_OPTIONS = ("ranks", "seeds", "initialized", "torch")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "spmd(ranks=4, seeds=1, initialized=True, torch=None): run the test on simulated ranks "
        "(spmdguard.testing.SimulatedWorld), once for each seed; seeds is a number or a list",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a marked test on every rank; fixtures are shared by all ranks."""
    __tracebackhide__ = True
    marker = pyfuncitem.get_closest_marker("spmd")
    if marker is None:
        return None
    from spmdguard.format import add_note
    from spmdguard.testing.world import SimulatedWorld

    options = _read_options(marker)
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        raise pytest.UsageError("@pytest.mark.spmd needs a plain function, not a coroutine function")
    for seed in _read_seeds(options.pop("seeds", 1)):
        try:
            with _without_torchs_log():
                SimulatedWorld(seed=seed, **options).run(pyfuncitem.obj, **arguments)
        except BaseException as exc:
            add_note(exc, f"spmdguard: to run this schedule alone: @pytest.mark.spmd(..., seeds=[{seed}])")
            raise
    return True


@contextlib.contextmanager
def _without_torchs_log() -> Iterator[None]:
    """torch logs each failed collective, at DEBUG, to a logger that is meant to go nowhere; pytest would show it."""
    logger = logging.getLogger(_TORCHS_LOGGER)
    logger.addFilter(_refuse)
    try:
        yield
    finally:
        logger.removeFilter(_refuse)


def _refuse(record: logging.LogRecord) -> bool:
    return False


def _read_options(marker: pytest.Mark) -> dict[str, Any]:
    unknown = set(marker.kwargs) - set(_OPTIONS)
    if marker.args or unknown:
        given = ", ".join([*map(repr, marker.args), *sorted(unknown)])
        raise pytest.UsageError(f"@pytest.mark.spmd takes {', '.join(_OPTIONS)} by name, got {given}")
    return dict(marker.kwargs)


def _read_seeds(seeds: int | Iterable[int]) -> list[int]:
    chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not chosen:
        raise pytest.UsageError(f"@pytest.mark.spmd needs at least one seed, got seeds={seeds!r}")
    return chosen

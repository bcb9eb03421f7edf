"""Fixtures of the runtime's tests: fresh per-process state, and real ranks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spmdguard import current, region

from .processes import Zygote


@pytest.fixture(autouse=True)
def fresh_process() -> Iterator[None]:
    """Every test starts without a deferred error, failure or stop, and leaves no region open."""
    with current.simulated_process({}):
        yield
    assert (region.thread.regions, region.thread.collectives) == ([], [])


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """The warm process that forks ranks."""
    pytest.importorskip("torch")
    warm = Zygote()
    yield warm
    warm.close()

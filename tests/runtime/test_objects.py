"""Objects whose every method is rank-local work."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import spmdguard
from spmdguard.testing import SimulatedWorld


class Writer:
    """A tracker with a bit of everything."""

    closed = False

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.rows: list[Any] = []
        self.tag = "run"

    def add(self, value: Any) -> Writer:
        """Keep a value; the writer itself, for chains."""
        if self.fails:
            raise OSError("server is down")
        self.rows.append(value)
        return self

    @property
    def url(self) -> str:
        if self.fails:
            raise OSError("no url")
        return "file:rows"

    def meet(self) -> None:
        spmdguard.barrier("inside")

    async def send(self) -> str:
        if self.fails:
            raise OSError("send")
        return "sent"

    def stream(self) -> Iterator[int]:
        yield 1
        if self.fails:
            raise OSError("stream")
        yield 2

    async def stream_later(self) -> AsyncIterator[int]:
        yield 1
        if self.fails:
            raise OSError("stream")

    def interrupt(self) -> None:
        raise KeyboardInterrupt

    def __enter__(self) -> Writer:
        return self.add("entered")

    def __exit__(self, *exc: object) -> bool:
        self.closed = True
        self.add(exc[0])
        return True

    async def __aenter__(self) -> Writer:
        return self.add("entered")

    async def __aexit__(self, *exc: object) -> bool:
        self.closed = True
        self.add(exc[0])
        return True

    def __len__(self) -> int:
        return len(self.add("len").rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.add("iter").rows)

    def __contains__(self, value: object) -> bool:
        return value in self.add("in").rows

    def __getitem__(self, index: int) -> Any:
        return self.add("get").rows[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self.add("set").rows[index] = value

    def __call__(self, value: Any) -> Writer:
        return self.add(value)


class Plain:
    """Has no double-underscore methods of its own."""


def taken() -> str:
    """The deferred error, cleared."""
    try:
        spmdguard.raise_if_deferred_error()
    except Exception as exc:
        return f"{type(exc).__name__}: {exc}"
    return ""


def test_methods_work_and_chain() -> None:
    """Without an error a method gives its result; a method that returns its object gives the proxy."""
    writer = Writer()
    proxy = spmdguard.rank_local_object(writer)
    assert proxy.add(1) is proxy
    assert proxy.add(2).add(3) is proxy
    assert (proxy.rows, proxy.tag, proxy.url, proxy(4)) == ([1, 2, 3, 4], "run", "file:rows", proxy)
    assert proxy.__wrapped__ is writer  # type: ignore[attr-defined]  # the proxy has it, the type does not
    assert isinstance(proxy, Writer)
    assert (repr(proxy), proxy == writer, hash(proxy) == hash(proxy)) == (
        "<rank-local 'Writer'>",
        False,
        True,
    )
    assert "add" in dir(proxy)


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (lambda writer: writer.add(1), None),
        (lambda writer: writer.url, None),
        (lambda writer: len(writer), 0),
        (lambda writer: list(writer), []),
        (lambda writer: 1 in writer, False),
        (lambda writer: writer[0], None),
        (lambda writer: writer(1), None),
        (lambda writer: list(writer.stream()), [1]),
        (lambda writer: asyncio.run(writer.send()), None),
    ],
)
def test_errors_are_deferred(use: Any, expected: Any) -> None:
    """The call goes on with an empty result of the right type, and the error waits."""
    proxy = spmdguard.rank_local_object(Writer(fails=True))
    assert use(proxy) == expected
    assert taken().startswith("OSError: ")


def test_setting_items_and_attributes_is_rank_local_too() -> None:
    """They reach the object; an error of theirs is deferred."""
    writer = Writer()
    proxy = spmdguard.rank_local_object(writer)
    proxy.tag = "second"
    proxy.add(0)
    proxy[0] = "x"
    del proxy.tag
    assert (writer.rows, writer.__dict__.get("tag")) == (["x", "set"], None)
    writer.fails = True
    proxy[0] = "y"
    assert taken() == "OSError: server is down"
    proxy.url = "read only"  # type: ignore[misc]  # that is the test
    assert taken().startswith("AttributeError: ")


def test_a_method_that_is_replaced_is_the_new_one() -> None:
    """Setting an attribute forgets the guarded method of that name."""
    proxy = spmdguard.rank_local_object(Writer())
    proxy.add(1)
    proxy.add = lambda value: "new"  # type: ignore[method-assign, assignment, return-value]  # that is the test
    assert proxy.add(2) == "new"  # type: ignore[comparison-overlap]


def test_a_missing_attribute_is_an_error_at_once() -> None:
    """It is missing on every rank, so every rank raises."""
    proxy: Any = spmdguard.rank_local_object(Writer())
    with pytest.raises(AttributeError, match="'Writer' object has no attribute 'ad'"):
        proxy.ad(1)
    assert not spmdguard.has_deferred_error()


@pytest.mark.parametrize("fails", [False, True])
def test_a_block_cannot_swallow_an_exception(fails: bool) -> None:
    """`__exit__` sees the block's exception and may not stop it; its own error is deferred."""
    writer = Writer(fails)
    with pytest.raises(KeyError), spmdguard.rank_local_object(writer) as entered:
        assert entered.__wrapped__ is writer  # type: ignore[attr-defined]  # the proxy has it
        raise KeyError
    assert (writer.closed, writer.rows) == (True, [] if fails else ["entered", KeyError])
    assert (taken() != "") is fails


@pytest.mark.parametrize("fails", [False, True])
def test_an_asynchronous_block_is_the_same(fails: bool) -> None:
    """`async with` enters and leaves as `with` does."""
    writer = Writer(fails)

    async def use() -> None:
        async with spmdguard.rank_local_object(writer) as entered:
            assert entered.__wrapped__ is writer  # type: ignore[attr-defined]  # the proxy has it
            raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(use())
    assert (writer.closed, taken() != "") == (True, fails)


def test_only_what_the_object_has_is_there() -> None:
    """A proxy of an object without `__enter__`, `__len__` or `__call__` has none either."""
    proxy: Any = spmdguard.rank_local_object(Plain())
    for wrong in (
        lambda: len(proxy),
        lambda: proxy(),
        lambda: proxy[0],
        lambda: proxy + 1,
        lambda: proxy < 1,
    ):
        with pytest.raises(TypeError):
            wrong()
    assert (callable(proxy), hasattr(type(proxy), "__enter__"), bool(proxy)) == (False, False, True)


def test_it_cannot_be_pickled_or_copied() -> None:
    """A copy would act on an object of its own: refused, with the way out."""
    proxy = spmdguard.rank_local_object(Writer())
    for wrong in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"<rank-local 'Writer'> cannot be pickled or copied"):
            wrong(proxy)


def test_interrupts_leave() -> None:
    """What is never deferred leaves a method as it leaves a function."""
    with pytest.raises(KeyboardInterrupt):
        spmdguard.rank_local_object(Writer()).interrupt()


def test_no_collective_starts_inside() -> None:
    """A method that meets the other ranks is refused, and the ranks still meet afterwards."""

    def use() -> str:
        proxy = spmdguard.rank_local_object(Writer(), name="log")
        if spmdguard.is_main_process():
            proxy.meet()
        spmdguard.barrier()
        error = spmdguard.deferred_error()
        return "" if error is None else f"{type(error).__name__} {getattr(error, 'region', '')}"

    assert SimulatedWorld(2, torch=False).run(use) == [
        "CollectiveInRankLocalError rank-local 'log.meet'",
        "",
    ]


@pytest.mark.parametrize("how", ["object", "make", "make fails"])
def test_only_the_main_rank_uses_it(how: str) -> None:
    """With `only` the other ranks do nothing, and with `make` they do not even make it."""
    made: list[Writer] = []

    def make() -> Writer:
        made.append(Writer())
        if how == "make fails":
            raise OSError("cannot make it")
        return made[-1]

    def use() -> tuple[Any, ...]:
        proxy = (
            spmdguard.rank_local_object(make(), only="main")
            if how == "object"
            else spmdguard.rank_local_object(make=make, only="main", name="writer")
        )
        with proxy as entered:
            entered.add(1)
        return proxy.add(2) is None, len(proxy), list(proxy.stream() or ()), spmdguard.has_deferred_error()

    results = SimulatedWorld(2, torch=False).run(use)
    left_out = (True, 0, [], False)
    if how == "make fails":
        assert results == [(True, 0, [], True), left_out]
    else:
        assert results == [(False, 5, [1, 2], False), left_out]
    assert len(made) == (2 if how == "object" else 1)


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        ((), {}, TypeError),
        ((Writer(),), {"make": Writer}, TypeError),
        ((Writer,), {}, TypeError),
        ((Writer(),), {"only": "rank 0"}, ValueError),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, options: Any, error: type[Exception]) -> None:
    """With what was given in the message."""
    with pytest.raises(error, match="got "):
        spmdguard.rank_local_object(*arguments, **options)


def test_a_real_writer(tmp_path: Any) -> None:
    """TensorBoard's writer: what it writes can be read back, and a full disk is deferred."""
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with spmdguard.rank_local_object(
        make=lambda: tensorboard.SummaryWriter(str(tmp_path)), only="main"
    ) as writer:
        writer.add_scalar("loss", 1.0, 1)
        writer.add_scalar("loss", object(), 2)
    assert [path.name.startswith("events.") for path in tmp_path.iterdir()] == [True]
    assert taken() != ""

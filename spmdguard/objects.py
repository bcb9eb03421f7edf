"""``rank_local_object``: every method of a tracker or writer is rank-local work.

Terms: the *proxy* is what the caller gets; the *object* is what it stands for; it is *absent* on ranks that
``only`` leaves out where it was made by ``make``, and where making it failed.

Rules for attributes and for the double-underscore methods that Python looks up on the class:
- a callable attribute, but for a class, becomes rank-local work; anything else is handed out as it is, so
  what it has itself is not guarded;
- reading, setting or deleting an attribute is rank-local work too, but a missing name is an ``AttributeError``
  at once, because it is missing on every rank;
- ``_FORWARDED`` methods are there where the object has them (all of them where it is absent), and give what
  Python needs after a deferred error: an empty iterator, 0, False, None;
- a block's own exception is shown to ``__exit__`` and goes on; the object cannot swallow it on one rank alone;
- equality, hash and truth are the proxy's own; other operators are not there; it cannot be pickled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

from spmdguard.decorated import kind_of
from spmdguard.driving import decorate_resumed
from spmdguard.work import Only, RankLocalWork

__all__ = ["rank_local_object"]

_T = TypeVar("_T")
_FORWARDED: dict[str, Callable[[], Any]] = {
    "__call__": lambda: None,
    "__contains__": lambda: False,
    "__delitem__": lambda: None,
    "__getitem__": lambda: None,
    "__iter__": lambda: iter(()),
    "__len__": lambda: 0,
    "__setitem__": lambda: None,
}
_BLOCKS = ("__enter__", "__exit__", "__aenter__", "__aexit__")
_OWN = frozenset({"_spmdguard_object", "_spmdguard_name", "_spmdguard_runs", "_spmdguard_methods"})


@overload
def rank_local_object(obj: _T, /, *, name: str | None = None, only: Only | None = None) -> _T: ...
@overload
def rank_local_object(*, make: Callable[[], _T], name: str | None = None, only: Only | None = None) -> _T: ...
def rank_local_object(
    obj: Any = None,
    /,
    *,
    make: Callable[[], Any] | None = None,
    name: str | None = None,
    only: Only | None = None,
) -> Any:
    """Guard every method of an object: its errors are deferred, and no collective starts inside it.

    ``writer = rank_local_object(make=lambda: SummaryWriter("runs"), only="main")`` makes the writer on the
    main rank alone; on the others every method does nothing. After a deferred error a method returns None.
    A method that returns its object returns the proxy. The object is guarded one level deep: what an
    attribute or a method's result has itself is not. ``proxy.__wrapped__`` is the object.

    SPMD:
        Rank-local: a collective begun inside a method raises ``CollectiveInRankLocalError``.
        Called by: any rank; with ``only``, the methods do nothing on the other ranks.
        Result: rank-varying, and so is what the methods return.
        Raises on: no rank, except ``KeyboardInterrupt``, ``SystemExit``, failures of a ``@collective``, and
            ``AttributeError`` where the object has no such attribute.

    Args:
        obj: the object, where it exists on every rank.
        make: makes the object, as rank-local work, on the ranks that ``only`` names.
        name: label in messages; the object's type without it.
        only: ``"main"`` uses the object on rank 0 only, ``"local_main"`` on local rank 0 of each host.

    Returns:
        A proxy that ``isinstance`` takes for the object.

    Raises:
        TypeError: neither or both of ``obj`` and ``make``, or ``obj`` is a class.
        ValueError: ``only`` is something else.
    """
    if only not in (None, "main", "local_main"):
        raise ValueError(f'only must be "main", "local_main" or None, got {only!r}')
    if (obj is None) == (make is None):
        raise TypeError(f"give either the object or make=, got {obj!r} and make={make!r}")
    if isinstance(obj, type):
        raise TypeError(
            f"obj must be an object, got the class {obj.__qualname__}; use make={obj.__qualname__}"
        )
    label = name or (type(obj).__name__ if make is None else "rank-local object")
    runs = RankLocalWork(label, only=only).begin()
    if make is not None and runs:
        obj = _attempt(label, make)
        label = name or (label if obj is None else type(obj).__name__)
    return _make_proxy(obj, label, runs and obj is not None)


def _attempt(label: str, call: Callable[..., Any], *args: Any, default: Any = None) -> Any:
    """Run one piece of rank-local work."""
    work = RankLocalWork(label, default)
    try:
        return work.step(call, *args)
    except Exception as exc:
        caught = exc
    try:
        return work.settle(caught)
    finally:
        del caught


class _Proxy:
    """What all proxies share; each has a class of its own with the methods that its object has."""

    _spmdguard_object: Any
    _spmdguard_name: str
    _spmdguard_runs: bool
    _spmdguard_methods: dict[str, Any]

    @property
    def __wrapped__(self) -> Any:
        return self._spmdguard_object

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            found = object.__getattribute__(self, "_spmdguard_object")
            return type(self) if found is None else type(found)
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        if name in _OWN:
            raise AttributeError(name)
        known = self._spmdguard_methods.get(name)
        if known is not None:
            return known
        if self._spmdguard_object is None:
            return _absent
        label = f"{self._spmdguard_name}.{name}"
        value = _attempt(label, _read, self._spmdguard_object, name)
        if isinstance(value, _Missing):
            raise value.error
        if not callable(value) or isinstance(value, type):
            return value
        if not self._spmdguard_runs:
            return _absent
        method = self._spmdguard_methods[name] = _guard(self, label, value)
        return method

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            object.__setattr__(self, name, value)
        elif self._spmdguard_runs:
            self._spmdguard_methods.pop(name, None)
            _attempt(f"{self._spmdguard_name}.{name}", setattr, self._spmdguard_object, name, value)

    def __delattr__(self, name: str) -> None:
        if self._spmdguard_runs:
            self._spmdguard_methods.pop(name, None)
            _attempt(f"{self._spmdguard_name}.{name}", delattr, self._spmdguard_object, name)

    def __dir__(self) -> list[str]:
        return [] if self._spmdguard_object is None else dir(self._spmdguard_object)

    def __repr__(self) -> str:
        state = "" if self._spmdguard_runs else ", absent on this rank"
        return f"<rank-local {self._spmdguard_name!r}{state}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"{self!r} cannot be pickled or copied; use its __wrapped__")


class _Missing:
    def __init__(self, error: AttributeError) -> None:
        self.error = error


def _read(found: Any, name: str) -> Any:
    try:
        return getattr(found, name)
    except AttributeError as error:
        return _Missing(error)


class _Absent:
    """Any attribute of an object that is not there: can be called, and gives None."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        return None

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "<nothing on this rank>"


_absent = _Absent()


def _guard(proxy: _Proxy, label: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method as rank-local work, of the same kind: function, coroutine, generator."""
    work = RankLocalWork(label)
    kind = kind_of(method, "rank_local_object")
    if kind != "function":
        return decorate_resumed(method, work, kind)
    target = proxy._spmdguard_object

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = _attempt(label, functools.partial(method, *args, **kwargs))
        return proxy if result is target else result

    return call


def _make_proxy(obj: Any, label: str, runs: bool) -> Any:
    methods: dict[str, Any] = {
        name: _forward(name, default) for name, default in _FORWARDED.items() if _has(obj, name)
    }
    methods.update({name: _BLOCK_METHODS[name] for name in _BLOCKS if _has(obj, name)})
    proxy = type("RankLocalObject", (_Proxy,), methods)()
    proxy._spmdguard_object, proxy._spmdguard_name, proxy._spmdguard_runs = obj, label, runs
    proxy._spmdguard_methods = {}
    return proxy


def _has(obj: Any, name: str) -> bool:
    """By the classes themselves: ``hasattr(cls, "__call__")`` is true of every class."""
    return obj is None or any(name in vars(cls) for cls in type(obj).__mro__)


def _forward(name: str, default: Callable[[], Any]) -> Callable[..., Any]:
    def forwarded(self: _Proxy, *args: Any, **kwargs: Any) -> Any:
        if not self._spmdguard_runs:
            return default()
        method = getattr(type(self._spmdguard_object), name)
        call = functools.partial(method, self._spmdguard_object, *args, **kwargs)
        result = _attempt(f"{self._spmdguard_name}.{name}", call, default=default())
        return self if result is self._spmdguard_object else result

    forwarded.__name__ = name
    return forwarded


def _enter(self: _Proxy) -> Any:
    if not self._spmdguard_runs:
        return self
    found = self._spmdguard_object
    entered = _attempt(f"{self._spmdguard_name}.__enter__", type(found).__enter__, found, default=self)
    return self if entered is found else entered


def _exit(self: _Proxy, *exc: Any) -> bool:
    if self._spmdguard_runs:
        found = self._spmdguard_object
        _attempt(f"{self._spmdguard_name}.__exit__", type(found).__exit__, found, *exc)
    return False


async def _await(label: str, call: Callable[..., Any], *args: Any) -> Any:
    async def run() -> Any:
        return await call(*args)

    return await decorate_resumed(run, RankLocalWork(label), "coroutine")()


async def _aenter(self: _Proxy) -> Any:
    if not self._spmdguard_runs:
        return self
    found = self._spmdguard_object
    entered = await _await(f"{self._spmdguard_name}.__aenter__", type(found).__aenter__, found)
    return self if entered is found or entered is None else entered


async def _aexit(self: _Proxy, *exc: Any) -> bool:
    if self._spmdguard_runs:
        found = self._spmdguard_object
        await _await(f"{self._spmdguard_name}.__aexit__", type(found).__aexit__, found, *exc)
    return False


_BLOCK_METHODS: dict[str, Any] = {
    "__enter__": _enter,
    "__exit__": _exit,
    "__aenter__": _aenter,
    "__aexit__": _aexit,
}

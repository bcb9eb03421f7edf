"""What kind of callable a decorator is put on, and the errors for those that cannot be right."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
from typing import Any

_DESCRIPTORS = (
    "staticmethod",
    "classmethod",
    "property",
    "cached_property",
    "partialmethod",
    "singledispatchmethod",
)
_DESCRIPTOR_TYPES = (
    staticmethod,
    classmethod,
    property,
    functools.cached_property,
    functools.partialmethod,
    functools.singledispatchmethod,
)


def kind_of(function: Any, decorator: str) -> str:
    """``"function"``, ``"coroutine"``, ``"generator"`` or ``"async generator"``.

    Raises:
        TypeError: a class, a property and the like, a method descriptor, or nothing callable.
    """
    if inspect.isclass(function):
        raise TypeError(
            f"@{decorator} cannot decorate the class {function.__qualname__!r}: an instance is no call; "
            f"decorate its methods"
        )
    for descriptor, name in zip(_DESCRIPTOR_TYPES, _DESCRIPTORS, strict=True):
        if isinstance(function, descriptor):
            raise TypeError(_wrong_order(function, name, decorator))
    if not callable(function):
        raise TypeError(f"@{decorator} needs a function, got {function!r}")
    if _makes_context_managers(function):
        raise TypeError(
            f"@{decorator} is above @contextmanager on {function.__name__!r}; calling it runs nothing yet. "
            + (
                'Use `with deferring("..."):` around what may fail inside'
                if decorator == "rank_local"
                else "Put @contextmanager on top"
            )
        )
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    if inspect.isasyncgenfunction(inner):
        return "async generator"
    if inspect.iscoroutinefunction(inner):
        return "coroutine"
    return "generator" if inspect.isgeneratorfunction(inner) else "function"


def _makes_context_managers(function: Any) -> bool:
    """Whether ``contextlib`` made this function out of a generator function."""
    wrapped = getattr(function, "__wrapped__", None)
    code = getattr(function, "__code__", None)
    made_there = code is not None and code.co_filename == contextlib.__file__
    return made_there and (inspect.isgeneratorfunction(wrapped) or inspect.isasyncgenfunction(wrapped))


def _wrong_order(function: Any, name: str, decorator: str) -> str:
    inner = (
        getattr(function, "fget", None)
        or getattr(function, "__func__", None)
        or getattr(function, "func", None)
    )
    shown = getattr(inner, "__name__", "method")
    return (
        f"@{decorator} is above @{name} on {shown!r}; a {name} object cannot be called. "
        f"Put @{name} on top:\n    @{name}\n    @{decorator}\n    def {shown}(...): ..."
    )


def describe_callable(function: Any) -> str:
    """The label of a callable in messages: its qualified name without ``<locals>``."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(name).rpartition("<locals>.")[2]


def is_being_decorated(fn: object) -> bool:
    """Whether ``fn`` is a function of a module that has not been given its name there yet.

    True while its decorators run for the first time. Nested functions and methods, and functions that were sent
    here by value, are not recognised.
    """
    inner = inspect.unwrap(fn) if isinstance(fn, types.FunctionType) else fn
    if not isinstance(inner, types.FunctionType) or not inner.__qualname__.isidentifier():
        return False
    module = sys.modules.get(inner.__module__)
    names = inner.__globals__
    return module is not None and names is vars(module) and inner.__qualname__ not in names

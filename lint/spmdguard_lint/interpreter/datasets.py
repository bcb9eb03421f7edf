"""How many items a data set, a sampler or a loader has, and why that may differ between ranks.

A loader is as long as what it draws from. A class of the project tells its length by ``__len__`` or by the loops of
its ``__iter__``; those of the library take it from their arguments. What counts are reasons to have another number
of items (a share by rank, an unseeded choice, the files of this host), not that the items themselves are other ones.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts.torch_core import LOADER, SAMPLER
from ..source.walking import walk
from ..traces.nodes import Loop, Tree, Yielded, every_node
from ..values.value import NO_TAINT, NONE, Taints, Value, union
from .frame import Frame

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo

_COUNTS = frozenset({"rank", "group-rank", "random", "filesystem", "time"})
_RANKS = frozenset({"rank", "group-rank"})
_MADE_OF = frozenset(
    {"Subset", "TensorDataset", "ConcatDataset", "ChainDataset", "SubsetRandomSampler", "BatchSampler"}
)
_OBJECTS = ("obj", "extobj")
_LIBRARY = "torch.utils.data."
MAX_LOOPS = 8


def loader_trip(frame: Frame, args: list[Value], kwargs: dict[str, Value]) -> Taints:
    """Why a ``DataLoader`` made with these arguments may have another number of batches on each rank."""
    batches = kwargs.get("batch_sampler")
    if batches is not None and batches.tag in _OBJECTS:
        return size_taint(frame, batches)
    size = args[1] if len(args) > 1 else kwargs.get("batch_size", NONE)
    by_size = frozenset(t for t in size.taint if t.kind in _COUNTS or t.kind == "exception")
    source = kwargs.get("sampler")
    if source is None or source.tag not in _OBJECTS:
        source = args[0] if args else kwargs.get("dataset", NONE)
    return union(by_size, size_taint(frame, source))


def length_taint(value: Value) -> Taints | None:
    """Why a loader or sampler of the library is of another length; None of other values.

    Which items a rank draws makes the loader another one, and not another number of batches.
    """
    if value.tag != "extobj" or value.data[0] not in (LOADER, SAMPLER):
        return None
    if value.data[0] == LOADER:
        return value.trip or NO_TAINT
    return frozenset(t for t in value.taint if t.kind in _COUNTS)


def made_of(qualname: str) -> bool:
    """Whether a constructor of the library makes something as long as its arguments."""
    return qualname.startswith(_LIBRARY) and qualname.rpartition(".")[2] in _MADE_OF


def arguments_trip(frame: Frame, qualname: str, args: list[Value]) -> Taints:
    """Why something made of these arguments may have another number of items; of a subset the indices count alone."""
    sources = args[1:] if qualname.endswith(".Subset") and len(args) > 1 else args
    return union(NO_TAINT, *(size_taint(frame, one) for one in sources))


def size_taint(frame: Frame, value: Value) -> Taints:
    """Why a data set may have another number of items on each rank."""
    if value.tag == "obj" and frame.machine.objects.info(value).kind == "instance":
        return _of_instance(frame, value)
    trip = value.trip
    if trip is None and value.tag in ("expr", "sym"):
        from .lengths import trip_taint

        trip = trip_taint(value)
    return frozenset(t for t in trip or NO_TAINT if t.kind in _COUNTS)


def _of_instance(frame: Frame, value: Value) -> Taints:
    from .attributes import bound_method
    from .calls import call_value

    cls = frame.machine.objects.info(value).cls
    if cls is None:
        return NO_TAINT
    length = cls.find_method("__len__")
    found: Taints = NO_TAINT
    if length is not None:
        with frame.collecting():
            result = call_value(frame, bound_method(frame, length, value), [], {}, length.node)
        found = frozenset(t for t in result.taint if t.kind in _COUNTS)
    iterate = cls.find_method("__iter__")
    if iterate is None or iterate.self_name is None:
        return found
    if length is None and iterate.is_generator:
        found = _of_yields(frame, value, iterate)
    return union(
        found, *(_of_field(frame, value, name) for name in _fields_run_over(iterate.node, iterate.self_name))
    )


def _of_yields(frame: Frame, value: Value, iterate: FunctionInfo) -> Taints:
    """Why the loops that yield in an ``__iter__`` have another number of rounds: they run over a share by rank."""
    from .attributes import bound_method
    from .calls import call_value
    from .loops import consume

    if frame.state is None:
        return NO_TAINT
    before = frame.state.copy()
    with frame.collecting() as nodes:
        made = call_value(frame, bound_method(frame, iterate, value), [], {}, iterate.node)
        if made.tag == "generator":
            consume(frame, iterate.node, made, lambda _value: None, iterate.name)
    frame.state = before
    loops = (node for node in every_node(nodes) if isinstance(node, Loop) and _yields(node.body))
    return frozenset(t for loop in loops for t in loop.trip if t.kind in _RANKS)


def _yields(nodes: Tree) -> bool:
    return any(isinstance(node, Yielded) for node in every_node(nodes))


def _of_field(frame: Frame, value: Value, name: str) -> Taints:
    from .attributes import read_attribute
    from .lengths import trip_taint

    with frame.collecting():
        field = read_attribute(frame, value, name, frame.machine.objects.info(value).cls.header)  # type: ignore[union-attr]  # an instance has a class
    return frozenset(
        t for t in (field.trip if field.trip is not None else trip_taint(field)) if t.kind in _COUNTS
    )


def _fields_run_over(function: ast.AST, self_name: str) -> list[str]:
    """The fields that the loops of ``__iter__`` run over, or whose iterator it returns."""
    names: list[str] = []
    for node in walk(function):
        over = node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else None
        if isinstance(node, (ast.Return, ast.YieldFrom)):
            over = node.value
        while isinstance(over, ast.Call) and over.args:
            over = over.args[0]
        if (
            isinstance(over, ast.Attribute)
            and isinstance(over.value, ast.Name)
            and over.value.id == self_name
        ):
            names.append(over.attr)
    return names[:MAX_LOOPS]

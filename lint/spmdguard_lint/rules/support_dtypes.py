"""Dtypes of the tensors that ranks hand to one collective: whether they can be told to differ.

Terminology: the dtype of a tensor is *named* where the call that made or converted it says it; its *base* is the value
that conversions started from. Two ranks differ where both dtypes are named and unequal, and very likely where one rank
converts what another hands over as it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..model import Certainty
from ..traces.nodes import Op
from ..values.evaluate import Valuation, evaluate, holds_rank, truth
from ..values.value import called
from .support_numpy import FROM_NUMPY, PYTHON, numpy_dtype
from .support_scalars import by_own_data, number_dtype, number_of
from .support_shapes import ALIKE, KEEPING
from .support_trees import WORLDS, Path, reaching

if TYPE_CHECKING:
    from ..values.value import Value

_ALIKE = ALIKE | {"reduce_scatter_tensor", "all_to_all_single", "scatter"}
_METHODS = {
    "half": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "bool": "bool",
}
_NAMES = {
    **_METHODS,
    **{name: name for name in _METHODS.values()},
    **{name: name for name in ("complex64", "complex128", "float8_e4m3fn", "float8_e5m2")},
}
_LIKE = frozenset(
    f"{name}{form}" for name in ("zeros", "ones", "empty", "full", "rand", "randn") for form in ("_like",)
) | frozenset({"new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"})
_DEFAULT = frozenset({"zeros", "ones", "empty", "eye", "linspace"})


class Dtype(NamedTuple):
    """The dtype of a tensor on one rank: its name where that is known, how sure, and what it was converted from."""

    name: str | None
    base: Hashable
    sure: bool = True


def unequal_dtypes(op: Op, path: Path) -> tuple[Certainty, Value] | None:
    """How sure it is that ranks hand tensors of other dtypes to an operation, and the tensor."""
    if op.name not in _ALIKE:
        return None
    for value in op.tensors:
        for one in _each(value):
            sure = _differ(one, path) if holds_rank(one) else by_own_data(one)
            if sure is not None:
                return sure, one
    return None


def _each(value: Value) -> Iterator[Value]:
    """The tensors that a value may be, where the same is chosen on all ranks."""
    if value.tag == "ite" and not value.data[0].taint:
        yield from _each(value.data[1])
        yield from _each(value.data[2])
    else:
        yield value


def _differ(value: Value, path: Path) -> Certainty | None:
    found: Certainty | None = None
    for world, local in WORLDS:
        seen: set[Dtype] = set()
        for rank in range(world):
            at = Valuation(rank, world, local)
            if reaching(path, at) and (dtype := dtype_of(value, at)) is not None:
                seen.add(dtype)
        known = [dtype for dtype in seen if dtype.name is not None]
        if len({dtype.name for dtype in known if dtype.sure}) > 1:
            return "definite"
        if len({dtype.name for dtype in known}) > 1:
            found = "likely"
        if any(_converts(one, other) for one in seen for other in seen):
            found = "likely"
    return found


def _converts(one: Dtype, other: Dtype) -> bool:
    return one.name is not None and other.name is None and one.base == other.base


def differing_dtypes(first: Value, here: Valuation, second: Value, there: Valuation) -> bool:
    """Whether two tensors on two ranks are known to have other dtypes."""
    one, other = dtype_of(first, here), dtype_of(second, there)
    return bool(one and other and one.name and other.name and one.name != other.name)


def dtype_of(value: Value, at: Valuation) -> Dtype | None:
    """The dtype of a tensor on one rank, as far as the calls that made it say it."""
    if value.tag == "ite":
        chosen = truth(value.data[0], at)
        return None if chosen is None else dtype_of(value.data[1 if chosen else 2], at)
    if value.tag != "expr" or not str(value.data[0]).startswith("call:"):
        return Dtype(None, value.key)
    name, operands = called(value.data[0]), value.data[1]
    number = number_of(value)
    if number is not None:
        inferred = number_dtype(number, at)
        return Dtype(inferred, None if inferred else value.key)
    if value.data[0] in FROM_NUMPY and operands:
        array = numpy_dtype(operands[0], at)
        if array not in (None, PYTHON) and len(operands) == 1:
            return Dtype(array, None, sure=False)
    base = dtype_of(operands[0], at) if operands else None
    given = next((o.data[1][0] for o in operands if o.tag == "expr" and o.data[0] == "dtype"), None)
    if given is not None:
        return _as(named(given, at), base)
    if name in _METHODS and len(operands) == 1:
        return _as(_METHODS[name], base)
    if name in ("to", "type"):
        return _converted(operands, at, base)
    if name in KEEPING or name in _LIKE:
        return base
    return Dtype("float32", None) if name in _DEFAULT else Dtype(None, value.key)


def _as(name: str | None, base: Dtype | None) -> Dtype | None:
    return None if name is None else Dtype(name, None if base is None else base.base)


def _converted(operands: tuple[Value, ...], at: Valuation, base: Dtype | None) -> Dtype | None:
    """What ``x.to(...)`` gives: the dtype among its arguments, or that of x where they name a device alone."""
    for operand in operands[1:]:
        name = named(operand, at)
        if name is not None:
            return _as(name, base)
    devices = all(_is_device(operand) for operand in operands[1:])
    return base if devices else None


def _is_device(value: Value) -> bool:
    text = str(value.data[0]) if value.tag == "expr" else ""
    return value.tag in ("const", "rank", "local_rank") or text in ("format", "call:torch.device")


def named(value: Value, at: Valuation) -> str | None:
    """The name of the dtype that a value is on one rank."""
    if value.tag == "ite":
        chosen = truth(value.data[0], at)
        return None if chosen is None else named(value.data[1 if chosen else 2], at)
    if value.tag == "ext" and str(value.data[0]).startswith("torch."):
        return _NAMES.get(str(value.data[0]).removeprefix("torch."))
    if value.tag == "expr" and value.data[0] == "getitem":
        items, index = value.data[1]
        position = evaluate(index, at)
        if (
            items.tag == "tuple"
            and isinstance(position, int)
            and -len(items.data) <= position < len(items.data)
        ):
            return named(items.data[position], at)
    return None

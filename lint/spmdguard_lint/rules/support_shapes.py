"""Shapes of the tensors that ranks hand to one collective: whether they can be told to differ.

Terminology: the *dimensions* of a tensor are what the call that made it says of them, for one rank; an unknown
one is None. A tensor is *filtered* when its length is the number of elements that meet a test of this rank's own
data (``x[mask]``, ``nonzero``, ``unique``). Operations that keep the shape are looked through.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..interpreter.selection import JOINING
from ..model import Certainty
from ..traces.judged import group_key
from ..traces.nodes import Branch, Op, every_node
from ..values.evaluate import UNKNOWN, Valuation, evaluate, rank_dependent, truth, world_dependent
from ..values.value import called, expression, parts_of
from .support_lengths import cut_to_own_length, generated, sized_by_itself
from .support_trees import WORLDS, Path, reaching

if TYPE_CHECKING:
    from ..traces.nodes import Tree
    from ..values.value import Value

ALIKE = frozenset(
    {"all_reduce", "all_gather", "all_gather_into_tensor", "broadcast", "reduce", "gather", "reduce_scatter"}
)
KEEPING = frozenset(
    {
        "contiguous",
        "cuda",
        "cpu",
        "to",
        "type",
        "float",
        "double",
        "half",
        "bfloat16",
        "long",
        "int",
        "bool",
        "byte",
    }
    | {
        "detach",
        "clone",
        "pin_memory",
        "requires_grad_",
        "flatten",
        "squeeze",
        "unsqueeze",
        "view",
        "reshape",
    }
    | {
        "sigmoid",
        "relu",
        "tanh",
        "abs",
        "neg",
        "exp",
        "log",
        "sqrt",
        "round",
        "sign",
        "clamp",
        "clip",
        "clamp_min",
    }
    | {"softmax", "log_softmax", "masked_fill", "nan_to_num", "dropout"}
)
_ELEMENTWISE = frozenset({"+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!="})
MADE = frozenset({"zeros", "ones", "empty", "full", "rand", "randn"})
_COUNTED = {"histc": 1, "linspace": 2, "logspace": 2}  # which operand says how many elements there are
_RESIZING = frozenset({"interpolate", "upsample", "resize", "center_crop"})
_FILTERS = frozenset({"masked_select", "nonzero", "unique", "unique_consecutive", "argwhere"})
_COUNTERS = frozenset({"bincount", "one_hot"})  # as long as the largest number, where no length is given
_DRAWN = frozenset({"data", "random"})
_SHARED = frozenset({"rank", "group-rank"})
_TESTS = frozenset({"<", "<=", ">", ">=", "==", "!=", "invert", "&", "|", "^"})
_TESTING = frozenset({"bool", "isnan", "isfinite", "isinf", "eq", "ne", "gt", "lt", "ge", "le", "isin"})
Dimensions = tuple[Any, ...]


def unequal(op: Op, path: Path, tree: Tree | None = None) -> tuple[Certainty, Value, str] | None:
    """How sure it is that ranks hand tensors of other sizes to an operation, the tensor, and why.

    ``tree`` holds the conditions that the program may check before.
    """
    if op.name not in ALIKE:
        return None
    for value in op.tensors:
        if op.name != "broadcast" and of_share(value) and not divides_evenly(tree):
            return "likely", value, "it has an entry for each item of this rank's share"
        if any(
            filtered(part)
            or put_together(part, _DRAWN)
            or (group_key(op) is None and cut_to_own_length(shaped(part)))
            for part in _operands(value)
        ):
            return "likely", value, "its length depends on this rank's own data"
        if group_key(op) is None and generated(shaped(value)):
            return "likely", value, "it is as wide as the longest answer that was generated on this rank"
        if sized_by_itself(op, value):
            return "likely", value, "a rank that receives makes it as long as its own share"
        if rank_dependent(value) and _differ(value, path):
            return "definite", value, "its size differs"
        if drawn(value):
            return "likely", value, "each process draws its size for itself"
    return None


def _operands(value: Value) -> Iterator[Value]:
    """A tensor, or what it is computed of element by element."""
    value = shaped(value)
    yield value
    if value.tag == "expr" and value.data[0] in _ELEMENTWISE:
        for operand in value.data[1]:
            yield from _operands(operand)


def drawn(value: Value) -> bool:
    """Whether a tensor's size is a random number of this process.

    What a network makes of a tensor of another size is not known: a pooling layer gives one size to all.
    """
    value = shaped(value)
    if value.tag != "expr":
        return False
    name, operands = called(value.data[0]), value.data[1]
    if name in _RESIZING:
        sizes = operands[1:]
    elif name in MADE:
        sizes = operands[:1] if name == "full" else operands
    else:
        return False
    return any(t.kind == "random" and t.certainty != "possible" for size in sizes for t in size.taint)


def filtered(value: Value) -> bool:
    """Whether a tensor's length is how many elements of this rank's own data meet a test."""
    value = shaped(value)
    if value.tag != "expr":
        return False
    operator, operands = value.data
    if not any(t.kind in ("data", "random") for operand in operands for t in operand.taint):
        return False
    name = called(operator)
    if name in _FILTERS or (name in _COUNTERS | {"where"} and len(operands) == 1):
        return True
    return operator == "getitem" and _is_test(operands[1])


def put_together(value: Value, why: frozenset[str]) -> bool:
    """Whether a tensor is made of a list whose items, or their rows, are as many as this rank alone says.

    ``why`` are the kinds of reasons that count.
    """
    value = shaped(value)
    if value.tag != "expr" or called(value.data[0]) not in JOINING or not value.trip:
        return False
    return any(t.kind in why and t.certainty != "possible" for t in value.trip)


def of_share(value: Value) -> bool:
    """Whether a tensor is made of a list with an entry for each item of a rank's share; not one of two lists."""
    return put_together(value, _SHARED) and shaped(value).data[1][0].tag != "ite"


def divides_evenly(tree: Tree | None) -> bool:
    """Whether a program asks somewhere for the remainder of a division by the world size: it sees to even shares."""
    return any(
        part.tag == "expr" and part.data[0] == "%" and world_dependent(part.data[1][1])
        for node in every_node(tree or [])
        if isinstance(node, Branch) and not rank_dependent(node.condition)
        for part in parts_of(node.condition)
    )


def _is_test(index: Value) -> bool:
    if index.tag != "expr":
        return False
    operator, operands = index.data
    if operator in ("invert", "&", "|", "^"):
        return any(_is_test(operand) for operand in operands)
    return operator in _TESTS or called(operator) in _TESTING


def shaped(value: Value) -> Value:
    """The value whose length another has that only some operations changed."""
    while value.tag == "expr" and value.data[1]:
        operator, operands = value.data
        if called(operator) in KEEPING:
            value = operands[0]
        elif (
            operator in _ELEMENTWISE and len(operands) == 2 and any(part.tag == "const" for part in operands)
        ):
            value = operands[1] if operands[0].tag == "const" else operands[0]
        else:
            break
    return value


def _differ(value: Value, path: Path) -> bool:
    for world, local in WORLDS:
        seen: list[Dimensions] = []
        for rank in range(world):
            at = Valuation(rank, world, local)
            if reaching(path, at) and (size := dimensions(value, at)) is not None:
                if any(_unlike(size, other) for other in seen):
                    return True
                seen.append(size)
    return False


def dimensions(value: Value, at: Valuation) -> Dimensions | None:
    """The dimensions of a tensor on one rank, as far as the call that made it says them."""
    value = shaped(value)
    if value.tag == "ite":
        chosen = truth(value.data[0], at)
        return None if chosen is None else dimensions(value.data[1 if chosen else 2], at)
    if value.tag == "expr" and (counted := _counted(called(value.data[0]), value.data[1])) is not None:
        size = evaluate(counted, at)
        return (size if isinstance(size, int) and not isinstance(size, bool) else None,)
    if value.tag != "expr" or called(value.data[0]) not in MADE:
        return None
    operands = tuple(o for o in value.data[1] if not (o.tag == "expr" and o.data[0] == "dtype"))
    operands = operands[:1] if called(value.data[0]) == "full" else operands
    if len(operands) == 1 and operands[0].tag == "tuple":
        operands = operands[0].data
    elif len(operands) == 1 and evaluate(operands[0], at) is UNKNOWN:
        return None  # one number, or a sequence of them
    sizes = [evaluate(operand, at) for operand in operands]
    if any(size is not UNKNOWN and type(size) is not int for size in sizes):
        return None  # what no tensor can be made of
    return tuple(None if size is UNKNOWN else size for size in sizes)


def _counted(name: str, operands: tuple[Value, ...]) -> Value | None:
    """What says how many elements a call gives that fills one dimension; None of other calls."""
    given = [one for one in operands if not (one.tag == "expr" and one.data[0] == "dtype")]
    if name == "arange" and 0 < len(given) < 3:
        return given[0] if len(given) == 1 else expression("-", (given[1], given[0]))
    which = _COUNTED.get(name)
    return given[which] if which is not None and which < len(given) else None


def differing_sizes(first: Value, here: Valuation, second: Value, there: Valuation) -> bool:
    """Whether two tensors on two ranks are known to have other numbers of elements."""
    one, other = dimensions(first, here), dimensions(second, there)
    known = one is not None and other is not None and None not in one and None not in other
    return known and one is not None and other is not None and _unlike(one, other)


def _unlike(first: Dimensions, second: Dimensions) -> bool:
    if None not in first and None not in second:
        return math.prod(first) != math.prod(second)
    return len(first) == len(second) and any(
        a is not None and b is not None and a != b for a, b in zip(first, second, strict=True)
    )

"""Selections whose size depends on contents: ``x[x > 0]``, ``nonzero``, ``unique``, ``masked_select``.

The shape of a tensor is taken to be the same on every rank, its contents are not. What a mask picks from a tensor
has as many items as the contents say, so its length varies for every reason for which the mask varies; and where the
mask is computed from what a function was given, the contents are taken for this rank's own. A mask computed from the
result of a collective is the same everywhere. So it is with a number of rounds that is computed from the masks, lengths
or tokens of a batch that a function was given.
"""

from __future__ import annotations

import ast
import re

from ..values.shares import PIECES
from ..values.value import NO_TAINT, Taint, Taints, Value, alternatives, retaint, union
from .frame import Frame

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_OF_MASKS = frozenset({"&", "|", "^", "~", "invert"})
_TESTS = frozenset(
    f"call:{name}" for name in ("isfinite", "isnan", "isinf", "bool", "eq", "ne", "gt", "ge", "lt", "le")
)
PICKS = frozenset({"nonzero", "unique", "unique_consecutive", "masked_select", "argwhere", "flatnonzero"})
_LAYING = frozenset({"cat", "concat", "concatenate", "stack", "vstack", "row_stack", "hstack"})
_COPYING = frozenset({"tensor", "as_tensor", "array", "asarray", "from_numpy"})  # of a list of numbers
JOINING = _LAYING | _COPYING
_INFERRING = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray"})
_ROOTS = ("torch.", "numpy.")
_KEEPS_LENGTH = frozenset(
    {"flatten", "ravel", "tolist", "squeeze", "contiguous", "detach", "clone", "numpy"}
) | frozenset({"cpu", "to", "cuda", "type", "astype", "long", "int", "float", "half", "bool"})
_GIVEN = frozenset({"param", "param-none", "element", "item", "field", "key"})
_WHY = "as many items as this rank's own data selects"
_ROUNDS = "as many rounds as this rank's own data asks for"
_OF_BATCHES = re.compile(r"mask|(?:^|_)(?:seq)?len|tokens|input_ids|labels")
_READING = frozenset({"sum", "max", "min", "amax", "item", "tolist", "count_nonzero", "mean"})
_OF_SHAPE = frozenset({"len", "attr:shape", "attr:ndim", "call:size", "call:dim", "call:numel"})


def is_mask(value: Value) -> bool:
    """Whether a value is a comparison of tensors, or made of such: as an index it selects."""
    if value.tag != "expr":
        return False
    operator, operands = value.data
    if operator in _OF_MASKS:
        return any(is_mask(operand) for operand in operands)
    return operator in _COMPARISONS or operator in _TESTS


def picks(qualname: str, num_args: int) -> bool:
    """Whether a library function gives as many items as contents say; ``where`` does with a single argument."""
    if not qualname.startswith(_ROOTS):
        return False
    name = qualname.rpartition(".")[2]
    return name in PICKS or (name == "where" and num_args == 1)


def picked(frame: Frame, selection: Value, by: Value, node: ast.AST) -> Value:
    """A selection by a mask or by the contents of ``by``: its length varies as those do."""
    why = frozenset(t for t in by.taint if t.kind not in ("synced", "order"))
    own: Taints = NO_TAINT
    if not why and (by.taint or is_given(by)):
        own = frozenset({Taint("data", frame.place(node), _WHY, "likely")})
    trip = union(selection.trip or NO_TAINT, why, own)
    return retaint(selection, union(selection.taint, own), trip) if trip else selection


def laid_together(frame: Frame, qualname: str, made: Value, args: list[Value]) -> Value:
    """What a library function makes; ``cat`` and ``tensor`` of a list give as many rows as it has, and as its items."""
    from .containers import fields_of
    from .contents import is_container, with_length

    made = in_pieces(qualname, made, args[1:])
    name = qualname.rpartition(".")[2]
    if not args or name not in JOINING or not qualname.startswith(_ROOTS):
        return made
    source = with_length(frame, args[0])
    if name in _COPYING and any(one.tag in ("const", "sym") for one in alternatives(source)):
        return made  # of a number; what decides which one is in its contents
    items: list[Value] = []
    if name in _LAYING:
        items = list(fields_of(frame, source).values()) if is_container(frame, source) else items
        items = list(source.data) if source.tag == "tuple" else items
    trip = union(source.trip or NO_TAINT, *(item.trip or NO_TAINT for item in items))
    trip = frozenset(t for t in trip if t.kind not in ("synced", "order"))
    return retaint(made, made.taint, union(made.trip or NO_TAINT, trip)) if trip else made


def infers(qualname: str) -> bool:
    """Whether a library function makes a tensor whose dtype follows from the numbers that it is given."""
    return qualname in _INFERRING


def in_pieces(name: str, made: Value, args: list[Value]) -> Value:
    """What a call makes; of those that cut into ``args[0]`` pieces there are as many as asked for, however long."""
    if not args or name.rpartition(".")[2] not in PIECES:
        return made
    return retaint(made, made.taint, args[0].taint)


def keeps_length(method: str, args: list[Value]) -> bool:
    """Whether what a method of a tensor gives is longer where the tensor is: ``x.reshape(-1, 4)`` too."""
    if method in ("reshape", "view"):
        sizes = [part for arg in args for part in (arg.data if arg.tag == "tuple" else (arg,))]
        return any(size.tag == "const" and size.data[0] == -1 for size in sizes)
    return method in _KEEPS_LENGTH


def is_given(value: Value) -> bool:
    """Whether a value is computed from parameters or items alone, so that nothing has made it the same everywhere."""
    stack, given = [value], False
    for _ in range(40):
        if not stack:
            return given
        current = stack.pop()
        if current.tag == "sym":
            label = current.data[0]
            kind = label[0] if isinstance(label, tuple) and label else None
            if kind == "expr":
                continue  # a slice
            if kind not in _GIVEN:
                return False
            given = True
        elif current.tag == "expr":
            stack.extend(current.data[1])
        elif current.tag in ("ite", "tuple"):
            stack.extend(current.data)
        elif current.tag not in ("const", "ext"):
            return False
    return False


def counted(frame: Frame, bounds: list[Value], node: ast.AST) -> Taints:
    """Why a range has another number of rounds: it is computed from what stands in this rank's own batch."""
    if not any(map(_by_contents, bounds)):
        return NO_TAINT
    return frozenset({Taint("data", frame.place(node), _ROUNDS, "likely")})


def _by_contents(number: Value, read: bool = False) -> bool:
    """Whether a number is read from the contents of a batch, on every way that does not give a constant."""
    if number.tag == "ite":
        ways = [one for one in alternatives(number) if one.tag != "const"]
        return bool(ways) and all(_by_contents(one, read) for one in ways)
    if number.tag != "expr" or number.data[0] in _OF_SHAPE:
        return False
    operator, operands = number.data
    if operator == "getitem" and operands[1].tag == "const" and isinstance(operands[1].data[0], str):
        return read and bool(_OF_BATCHES.search(operands[1].data[0])) and is_given(operands[0])
    if operator.startswith("attr:"):
        return read and bool(_OF_BATCHES.search(operator)) and is_given(operands[0])
    several = operator in ("max", "min") and len(operands) > 1  # of several numbers
    read = read or (not several and operator.rpartition(".")[2].removeprefix("call:") in _READING)
    return any(_by_contents(one, read) for one in operands)


def distinct(kind: str, item: Value) -> Taints:
    """Why a set made of items may have another number of them: as many as are different; keys and indices all are."""
    if kind != "set" or all(_is_one_of_its_kind(one) for one in alternatives(item)):
        return NO_TAINT
    return frozenset(t for t in item.taint if t.kind in ("data", "random", "time"))


def _is_one_of_its_kind(value: Value) -> bool:
    label = value.data[0] if value.tag == "sym" else None
    return isinstance(label, tuple) and label[:1] in (("key",), ("index",))


def placed(items: Value, item: Value) -> Value:
    """An item at a place of a list: which one it is varies with the rank where the rank has chosen the items."""
    which = frozenset(t for t in items.trip or NO_TAINT if t.kind in ("rank", "group-rank"))
    return retaint(item, union(item.taint, which), item.trip) if which else item

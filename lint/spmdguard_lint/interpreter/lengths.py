"""Why ranks may run a loop over a value a different number of times."""

from __future__ import annotations

from ..values.value import NO_TAINT, Taints, Value, constant, doubted, is_const, retaint, union

_AS_LONG = frozenset(
    {
        "call:values",
        "call:items",
        "call:keys",
        "enumerate",
        "zip",
        "sorted",
        "list",
        "tuple",
        "iter",
        "reversed",
    }
)
UNEVEN = frozenset(
    {"call:datasets.distributed.split_dataset_by_node", "call:shard"}
)  # neither pads nor drops
_MAPPINGS = ("call:items", "call:keys", "call:values")
PARTS_OF_MODULES = frozenset(
    f"call:{name}{what}"
    for name in ("", "named_")
    for what in ("parameters", "buffers", "modules", "children")
)


def trip_taint(value: Value) -> Taints:
    """Why ranks may run a loop over this value a different number of times."""
    if value.trip is not None:
        return value.trip
    if value.tag == "expr" and value.data[0] in PARTS_OF_MODULES:
        return NO_TAINT
    if value.tag == "expr" and value.data[0] in _AS_LONG:
        found = union(*(trip_taint(operand) for operand in value.data[1]))
        # a mapping that was found here or made there mostly has the same entries
        return doubted(found, "filesystem") if value.data[0] in _MAPPINGS else found
    if value.tag not in ("expr", "sym"):
        return NO_TAINT
    return frozenset(
        t for t in value.taint if t.kind in ("rank", "group-rank", "time", "random", "filesystem")
    )


def part_of_share(part: Value, made: Value, index: Value) -> Value:
    """One of several things that a call gives: as long on every rank where what the call makes is (two loaders)."""
    call = is_const(index) and made.tag == "expr" and str(made.data[0]).startswith("call:")
    return retaint(part, part.taint, NO_TAINT) if call and made.trip is not None and not made.trip else part


def count_of(iterated: Value) -> Value | None:
    """The number of rounds of a loop over a value, where it is a constant or what ``range`` is given."""
    if iterated.tag == "tuple":
        return constant(len(iterated.data))
    if iterated.tag == "expr" and iterated.data[0] == "range":
        operands = iterated.data[1]
        if all(is_const(o) and isinstance(o.data[0], int) for o in operands):
            try:
                return constant(len(range(*(o.data[0] for o in operands))))
            except (TypeError, ValueError):
                return None
        if len(operands) == 1:
            only: Value = operands[0]
            return only
    return None

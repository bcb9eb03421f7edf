"""What is packed into bytes and taken out again: the same values, so that each part keeps its own reasons to differ."""

from __future__ import annotations

import re

from ..values.value import Value, is_const

_COPIES = frozenset({"call:bytes", "call:bytearray", "call:memoryview"})
_DUMPED = {
    f"{module}.loads": f"call:{module}.dumps"
    for module in ("pickle", "json", "marshal", "dill", "cloudpickle")
}
_PART = re.compile(r"(\d*)([A-Za-z?])")
_TEXTS = "sp"  # of which the number is their length
_UNPACKING = frozenset({"struct.unpack", "struct.unpack_from"})


def unpacked(qualname: str, args: list[Value]) -> Value | None:
    """What a call takes out of bytes that the program has packed itself; None for any other call."""
    if qualname in _UNPACKING and len(args) == 2:
        packed = _bytes_of(args[1], "call:struct.pack")
        if (
            packed is None
            or not packed
            or packed[0].key != args[0].key
            or not _one_each(args[0], len(packed) - 1)
        ):
            return None
        from .expressions import tuple_value

        return tuple_value(list(packed[1:]))
    if qualname in _DUMPED and len(args) == 1:
        dumped = _bytes_of(args[0], _DUMPED[qualname])
        return dumped[0] if dumped else None
    if qualname == "builtins.int.from_bytes" and args:
        packed = _bytes_of(args[0], "call:to_bytes")
        return packed[0] if packed else None
    return None


def _bytes_of(value: Value, maker: str) -> tuple[Value, ...] | None:
    """What a call was given whose bytes a value is, or a copy of them."""
    while value.tag == "expr" and value.data[0] in _COPIES and len(value.data[1]) == 1:
        value = value.data[1][0]
    if value.tag != "expr" or value.data[0] != maker:
        return None
    operands: tuple[Value, ...] = value.data[1]
    return operands


def _one_each(form: Value, count: int) -> bool:
    """Whether a format is that of as many values: ``<ii``, ``!2i``."""
    if not is_const(form) or not isinstance(form.data[0], str):
        return False
    parts = _PART.findall(form.data[0])
    return count == sum(
        1 if letter in _TEXTS else 0 if letter == "x" else int(number or 1) for number, letter in parts
    )

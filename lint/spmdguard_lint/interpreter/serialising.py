"""What JSON has no form for: tensors, arrays, paths, sets, instances of the project. To write one raises each time.

Only what is certain counts: a value that is a tensor in every alternative, in a place that is written for sure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..facts.files import PATH
from ..traces.nodes import Fallible
from ..values.value import Value
from .containers import fields_of
from .contents import REST
from .expressions import text_of

if TYPE_CHECKING:
    import ast

    from .frame import Frame

WRITERS = frozenset({"json.dump", "json.dumps"})
_DEPTH = 3
_ARRAYS = frozenset(
    f"numpy.{name}" for name in ("array", "asarray", "zeros", "ones", "arange", "concatenate", "stack")
)
_MAKERS = frozenset(
    f"torch.{name}"
    for name in [
        "tensor",
        "zeros",
        "ones",
        "empty",
        "full",
        "arange",
        "linspace",
        "rand",
        "randn",
        "randint",
        "randperm",
        "eye",
        "stack",
        "cat",
        "sum",
        "mean",
        "norm",
        "max",
        "min",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "rand_like",
        "randn_like",
        "as_tensor",
        "from_numpy",
        "abs",
        "sqrt",
        "square",
        "exp",
        "matmul",
        "mm",
        "bmm",
        "dot",
        "where",
        "clamp",
        "softmax",
        "log_softmax",
    ]
)
_KEEPING = frozenset(
    [
        "norm",
        "mean",
        "sum",
        "std",
        "var",
        "abs",
        "sqrt",
        "square",
        "exp",
        "log",
        "detach",
        "cpu",
        "cuda",
        "to",
        "float",
        "double",
        "half",
        "bfloat16",
        "long",
        "int",
        "clone",
        "contiguous",
        "squeeze",
        "unsqueeze",
        "view",
        "reshape",
        "flatten",
        "argmax",
        "argmin",
        "prod",
        "median",
        "softmax",
        "log_softmax",
        "clamp",
        "pow",
        "mul",
        "add",
        "sub",
        "div",
        "cumsum",
        "t",
        "mul_",
        "add_",
        "sub_",
        "div_",
        "sum_",
        "clamp_",
        "zero_",
        "fill_",
        "requires_grad_",
        "index_select",
        "gather",
    ]
)
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "**", "@", "getitem", "neg"})
_IN_PLACE = re.compile(r"\b(all_reduce|broadcast|reduce|all_gather_into_tensor|reduce_scatter_tensor|recv)\(")
_TYPES = frozenset({"torch.Tensor", "torch.distributed.tensor.DTensor"})


def note_unwritable(frame: Frame, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> None:
    """Mark that ``json.dump(...)`` raises each time, if what it is given tells."""
    if not args or "default" in kwargs or "cls" in kwargs:
        return
    problem = unwritable(frame, args[0])
    if problem:
        frame.out.append(
            Fallible(frame.place(node), text_of(node), False, sure=f"JSON has no form for {problem}")
        )


def unwritable(frame: Frame, value: Value, depth: int = 0) -> str:
    """The part of a value that JSON cannot write, in words; "" where none is certain."""
    if is_tensor(value):
        return "a tensor"
    if is_array(value):
        return "an array"
    if value.tag == "extobj" and value.data[0] == PATH:
        return "a path"
    if value.tag == "tuple":
        return _first(frame, value.data, depth)
    if value.tag != "obj" or depth > _DEPTH or frame.machine.objects.info(value).symbolic:
        return ""
    info = frame.machine.objects.info(value)
    if info.kind == "set":
        return "a set"
    if info.kind == "instance":
        plain = info.cls is not None and not info.cls.external_bases()
        return f"an instance of `{info.cls.name}`" if plain and info.cls is not None else ""
    fields = fields_of(frame, value)
    if REST in fields:
        return ""  # written under a key that is not known: any item may have been replaced
    return _first(frame, tuple(fields[name] for name in sorted(fields)), depth)


def _first(frame: Frame, values: tuple[Value, ...], depth: int) -> str:
    return next((problem for part in values if (problem := unwritable(frame, part, depth + 1))), "")


def is_array(value: Value) -> bool:
    """Whether a value is an array of numpy, by the call that made it."""
    if value.tag != "expr":
        return False
    called = str(value.data[0]).removeprefix("call:")
    return called in _ARRAYS or (called == "numpy" and is_tensor(value.data[1][0]))


def is_tensor(value: Value) -> bool:
    """Whether a value is a tensor, by the calls that made it."""
    if value.tag == "extobj":
        return value.data[0] in _TYPES
    if value.tag == "ite":
        return is_tensor(value.data[1]) and is_tensor(value.data[2])
    if value.tag == "sym":
        name = value.data[0]
        if not isinstance(name, tuple) or len(name) < 2:
            return False
        if name[0] == "filled":
            return isinstance(name[2], str) and bool(_IN_PLACE.search(name[2]))
        return name[0] in _MAKERS
    if value.tag != "expr":
        return False
    operator, operands = value.data
    if operator in _ARITHMETIC:
        return is_tensor(operands[0]) or (operator != "getitem" and any(is_tensor(o) for o in operands[1:]))
    if not isinstance(operator, str) or not operator.startswith("call:"):
        return False
    called = operator.removeprefix("call:")
    if called in _MAKERS or called.startswith("torch.nn.functional."):
        return True
    return called in _KEEPING and bool(operands) and is_tensor(operands[0])

"""Dtypes of numpy arrays, as far as the calls that made them say it; what is made of Python numbers has 64 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values.evaluate import Valuation, truth

if TYPE_CHECKING:
    from ..values.value import Value

FROM_NUMPY = frozenset(
    {"call:torch.from_numpy", "call:torch.tensor", "call:torch.as_tensor", "call:torch.asarray"}
)
_FLOATS = frozenset({"zeros", "ones", "empty", "eye", "identity"})
_SPACED = frozenset({"linspace", "logspace", "geomspace"})  # of which the dtype is no second argument
_RANDOM = frozenset({"rand", "randn", "random", "normal", "uniform", "random_sample", "standard_normal"})
_OF_LISTS = frozenset({"array", "asarray", "arange", "stack", "concatenate"})
_KEEPING = frozenset(
    {"sum", "reshape", "copy", "flatten", "ravel", "cumsum", "max", "min", "transpose", "squeeze", "clip"}
) | frozenset({"abs", "absolute", "diff", "roll", "flip", "sort", "square", "tile", "repeat"})
_FLOATING = frozenset({"mean", "std", "var", "exp", "log", "sqrt", "softmax"}) | frozenset(
    {"expm1", "log1p", "log2", "log10", "sin", "cos", "tan", "tanh", "sinh", "cosh", "arctan"}
)
_BETWEEN = frozenset({"maximum", "minimum", "hypot", "add", "subtract", "multiply", "divide", "power"})
_NAMES = frozenset(
    {"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "complex64", "complex128"}
)
_ALIASES = {"double": "float64", "single": "float32", "half": "float16", "float": "float64", "int": "int64"}
PYTHON = "python"  # made of Python numbers: whole ones or floats, of 64 bits


def numpy_dtype(value: Value, at: Valuation) -> str | None:
    """The name of an array's dtype on one rank; PYTHON for one made of Python numbers, None where it is not known."""
    if value.tag == "ite":
        chosen = truth(value.data[0], at)
        return None if chosen is None else numpy_dtype(value.data[1 if chosen else 2], at)
    if value.tag != "expr":
        drawn = value.tag == "sym" and isinstance(value.data[0], tuple) and str(value.data[0][0])
        return "float64" if drawn and drawn.startswith("numpy.random.") and _last(drawn) in _RANDOM else None
    operator, operands = str(value.data[0]), value.data[1]
    if operator in ("+", "-", "*", "/", "**", "//", "%", "neg"):
        return _computed(operator, operands, at)
    given = next((o.data[1][0] for o in operands if o.tag == "expr" and o.data[0] == "dtype"), None)
    if given is not None or operator == "call:astype":
        return _named(given or operands[-1])
    root, _, name = operator.removeprefix("call:").rpartition(".")
    if root == "numpy":
        if name in _FLOATS:
            return "float64" if len(operands) == 1 else None
        if name in _SPACED:
            return "float64" if len(operands) <= 3 else None
        if name in _BETWEEN and len(operands) == 2:
            return _computed("/" if name == "divide" else name, operands, at)
        if name in _OF_LISTS and operands:
            return PYTHON if _is_python(operands[0]) else numpy_dtype(operands[0], at)
    if operator.startswith("call:") and root in ("", "numpy") and name in _KEEPING | _FLOATING and operands:
        inner = numpy_dtype(operands[0], at)
        return "float64" if inner == PYTHON and name in _FLOATING else inner
    return None


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _computed(operator: str, operands: tuple[Value, ...], at: Valuation) -> str | None:
    """The dtype of what is computed from arrays; numbers beside them do not change it."""
    arrays = [numpy_dtype(one, at) for one in operands if one.tag in ("expr", "ite")]
    if not arrays or None in arrays:
        return None
    if all(one == PYTHON for one in arrays):
        return "float64" if operator == "/" else PYTHON
    names = {one for one in arrays if one != PYTHON}
    return (
        "float64" if "float64" in names else names.pop() if len(names) == 1 and PYTHON not in arrays else None
    )


def _is_python(value: Value) -> bool:
    """Whether a value is a list or a tuple that is written down, or made by a comprehension."""
    label = value.data[0] if value.tag == "sym" else None
    return value.tag == "tuple" or (isinstance(label, tuple) and label[:1] == ("contents",))


def _named(value: Value) -> str | None:
    if value.tag == "ext":
        name = str(value.data[0]).rpartition(".")[2]
    elif value.tag == "const" and isinstance(value.data[0], str):
        name = value.data[0]
    else:
        return None
    name = _ALIASES.get(name, name)
    return name if name in _NAMES else None

"""Whether a call prints, writes or publishes by its words: what the analysis cannot tell of objects it does not know.

Terminology: a call *publishes* when, in a function of its own file that it comes to outside every branch, a statement
is a call of such a verb whose result nobody uses. Cost: O(n) in the functions reached.
"""

from __future__ import annotations

import libcst as cst

from .blocks import last_name, only_call, unconditional
from .script import Script, walk

_BEGINNINGS = ("write", "save", "dump", "upload", "publish", "push", "export", "log_", "to_")
_VERBS = frozenset(
    {"print", "log", "put", "post", "savefig", "unlink", "rename", "replace"}
    | {"add_scalar", "add_scalars", "add_image", "add_images", "add_figure", "add_histogram", "add_text"}
)


def publishes(script: Script, operation: cst.BaseExpression) -> bool:
    """Whether a call comes to a statement that publishes, outside the branches on the way."""
    if not isinstance(operation, cst.Call):
        return False
    functions: dict[str, list[cst.FunctionDef]] = {}
    for node in walk(script.module):
        if isinstance(node, cst.FunctionDef):
            functions.setdefault(node.name.value, []).append(node)
    names, seen = [last_name(operation.func)], set[str]()
    while names:
        name = names.pop()
        if name in seen:
            continue
        seen.add(name)
        for function in functions.get(name, ()):
            for step in unconditional(function.body):
                call = only_call(step)
                called = last_name(call.func) if call is not None else ""
                if _is_verb(called) and called not in functions:
                    return True
                if isinstance(step, cst.Call):
                    names.append(last_name(step.func))
    return False


def _is_verb(name: str) -> bool:
    return name in _VERBS or name.startswith(_BEGINNINGS)

"""Whether a function takes training steps, as far as its own file tells.

Terminology: a function *trains* when it, or a function of the same file that it calls by name, runs a backward pass
or steps an optimizer. Cost: O(n) in the functions reached.
"""

from __future__ import annotations

import libcst as cst

from .blocks import last_name
from .script import Script, walk

_TRAINING_CALLS = ("train_step", "training_step")
_FUNCTIONS = (cst.FunctionDef, cst.Module)


def trains(script: Script, node: cst.CSTNode) -> bool:
    """Whether the function around a node, or the module where there is none, trains."""
    around = next((outer for outer in script.around(node) if isinstance(outer, _FUNCTIONS)), script.module)
    functions: dict[str, list[cst.FunctionDef]] = {}
    for known in walk(script.module):
        if isinstance(known, cst.FunctionDef):
            functions.setdefault(known.name.value, []).append(known)
    seen: set[cst.CSTNode] = {around}
    stack: list[cst.CSTNode] = [around]
    while stack:
        for call in walk(stack.pop()):
            if not isinstance(call, cst.Call):
                continue
            if _takes_step(call):
                return True
            reached = [f for f in functions.get(last_name(call.func), ()) if f not in seen]
            seen.update(reached)
            stack.extend(reached)
    return False


def _takes_step(call: cst.Call) -> bool:
    name = last_name(call.func)
    if name.endswith("backward") or name in _TRAINING_CALLS:
        return True
    if name != "step" or not isinstance(call.func, cst.Attribute):
        return False
    owner = last_name(call.func.value).lower()
    return "optim" in owner or owner in ("opt", "engine", "scaler")

"""Programs that start trainings as child processes: which commands do, and what becomes of the child's end.

Terminology: a *launch command* names a launcher (``torchrun``, ``accelerate launch``, ``srun python ...``). A name
*holds* one when it is assigned a text or list with a launcher's name in it, or what a function of the file with such
a text gives back. Names are told apart by function; attributes are those of the whole file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..names.bindings import ImportBinding
from ..names.dotted import called_name
from ..source.unparsing import unparse
from ..source.walking import children, walk

if TYPE_CHECKING:
    from ..names.modules import Module

Function = ast.FunctionDef | ast.AsyncFunctionDef
_ALONE = re.compile(
    r"(?:^|[\s/])(?:torchrun|deepspeed|horovodrun|torch\.distributed\.(?:run|launch))(?:\s|$)"
)
_WITH_LAUNCH = re.compile(r"(?:^|[\s/])accelerate(?:\s+launch\b|$)")
_GENERAL = re.compile(r"(?:^|[\s/])(?:srun|mpirun|mpiexec)(?:\s|$)")
_PYTHON = re.compile(r"python|\.py\b|executable")
PROCESSES = frozenset(
    f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")
) | {"os.system"}
LAUNCHER = re.compile(
    rb"torchrun|torch\.distributed\.(?:run|launch)|accelerate|deepspeed|horovodrun|srun|mpirun|mpiexec"
)


def functions_of(module: Module) -> Iterator[Function | ast.Module]:
    """The functions of a file, and its own body."""
    yield module.tree
    for node in walk(module.tree):
        if isinstance(node, Function):
            yield node


def own_nodes(scope: Function | ast.Module) -> Iterator[ast.AST]:
    """The nodes of a function or file without those of the functions inside."""
    stack: list[ast.AST] = [*reversed(scope.body)]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            stack += reversed(children(node))


def is_launch(node: ast.expr) -> bool:
    """Whether an expression is a command that names a launcher."""
    texts = [text for part in _words(node) for text in [part.strip()] if text]
    whole = " ".join(texts)
    if any(_ALONE.search(text) for text in texts):
        return True
    if any(_WITH_LAUNCH.search(text) for text in texts) and re.search(r"\blaunch\b", whole):
        return True
    return any(_GENERAL.match(text) for text in texts[:1]) and _PYTHON.search(unparse(node)) is not None


def _words(node: ast.expr) -> Iterator[str]:
    """The constant texts of a command: a text, the items of a list, what is added to it."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(v.value) if isinstance(v, ast.Constant) else "x" for v in node.values)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for item in node.elts:
            yield from _words(item)
    elif isinstance(node, ast.BinOp):
        yield from _words(node.left)
        yield from _words(node.right)
    elif isinstance(node, ast.Call) and called_name(node) in ("split", "format", "which", "dedent"):
        for part in (getattr(node.func, "value", None), *node.args):
            if isinstance(part, ast.expr):
                yield from _words(part)


class Launches:
    """The launch commands of one file, and the names that hold them."""

    def __init__(self, module: Module) -> None:
        self.imported = {
            local: binding.target
            for local, bindings in module.bindings.items()
            for binding in bindings
            if isinstance(binding, ImportBinding)
        }
        self.attributes: set[str] = set()
        self.makers: set[str] = set()
        self.names: dict[ast.AST, set[str]] = {}
        self._nodes = {scope: list(own_nodes(scope)) for scope in functions_of(module)}
        for _ in range(2):
            for scope in self._nodes:
                self._read(scope)
        self.shared = self.names.get(module.tree, set())

    def _read(self, scope: Function | ast.Module) -> None:
        held = self.names.setdefault(scope, set())
        for node in self._nodes[scope]:
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
                if self.holds(scope, node.value):
                    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                        self._keep(held, target)
            elif isinstance(node, ast.Call) and called_name(node) in ("append", "extend", "insert"):
                owner = node.func.value if isinstance(node.func, ast.Attribute) else None
                if owner is not None and any(self.holds(scope, argument) for argument in node.args):
                    self._keep(held, owner)
            elif isinstance(node, ast.Return) and isinstance(scope, Function) and node.value is not None:
                self.makers.update([scope.name] if self.holds(scope, node.value) else [])

    def _keep(self, held: set[str], target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            held.add(target.id)
        elif isinstance(target, ast.Attribute):
            self.attributes.add(target.attr)

    def process(self, call: ast.Call) -> str:
        """Which function that starts processes a call means (``run``, ``Popen``, ``system``), or ""."""
        owner, _, name = unparse(call.func).rpartition(".")
        target = self.imported.get(owner, "") + f".{name}" if owner else self.imported.get(name, "")
        return name if target in PROCESSES else ""

    def holds(self, scope: ast.AST, node: ast.expr) -> bool:
        """Whether an expression is a launch command, or a name that holds one."""
        if isinstance(node, ast.Name):
            return node.id in self.names.get(scope, ()) or node.id in getattr(self, "shared", ())
        if isinstance(node, ast.Attribute):
            return node.attr in self.attributes
        if isinstance(node, (ast.List, ast.Tuple)):
            return is_launch(node) or any(
                self.holds(scope, item.value if isinstance(item, ast.Starred) else item) for item in node.elts
            )
        if isinstance(node, ast.BinOp):
            return is_launch(node) or self.holds(scope, node.left)
        if isinstance(node, ast.Call):
            if called_name(node) in self.makers:
                return True
            return called_name(node) in ("join", "split", "list", "str", "quote") and any(
                self.holds(scope, argument) for argument in node.args
            )
        return is_launch(node)

    def speaks(self, scope: Function | ast.Module) -> bool:
        """Whether a function itself puts a launch command together, or uses one."""
        return any(isinstance(node, ast.expr) and self.holds(scope, node) for node in self._nodes[scope])

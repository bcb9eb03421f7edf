"""Functions of real packages that hold a collective in a place where an injected defect is a real one.

A target is a statement that calls ``torch.distributed`` directly (resolved through the file's own imports),
stands in a function, and is reached by every rank as far as its surroundings show: not below a test that
names a rank or the main process (or a name that the file assigns from such an expression, like
``self.is_leader = rank == 0``), not in a handler, a finally block or a lambda.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

COLLECTIVES = {  # and where each takes its group
    "all_gather": 2,
    "all_gather_into_tensor": 2,
    "all_gather_object": 2,
    "all_reduce": 2,
    "all_to_all": 2,
    "all_to_all_single": 4,
    "barrier": 0,
    "broadcast": 2,
    "broadcast_object_list": 2,
    "gather": 3,
    "gather_object": 3,
    "reduce": 3,
    "reduce_scatter": 3,
    "reduce_scatter_tensor": 3,
    "scatter": 3,
    "scatter_object_list": 3,
}
RANK_WORDS = ("rank", "is_main", "is_master", "is_global_zero", "is_local_main", "process_index", "src")


@dataclass(frozen=True)
class Target:
    """One statement with a collective; lines count from 1, ``end`` is the statement's last line."""

    path: Path
    function: str
    function_start: int
    function_end: int
    start: int
    end: int
    column: int
    op: str
    tensor: str  # the text of the first argument, "" when it is no plain name
    group: str  # the text of the group argument, "" for the default group
    in_loop: bool


def targets(path: Path) -> Iterator[Target]:
    """The first target of each function of a file."""
    try:
        text = path.read_text(encoding="utf-8")
        if "distributed" not in text:
            return
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    aliases = _aliases(tree)
    if not aliases:
        return
    words = (*RANK_WORDS, *_rank_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            target = _first(path, node, aliases, words)
            if target is not None:
                yield target


def _rank_names(tree: ast.Module) -> frozenset[str]:
    """Names and fields that the file assigns from an expression which compares a rank, in lower case."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(
            node.value, (ast.Compare, ast.BoolOp)
        ):
            continue
        if any(word in ast.unparse(node.value).lower() for word in RANK_WORDS):
            targets_of = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(ast.unparse(target).rpartition(".")[2].lower() for target in targets_of)
    return frozenset(found)


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Names in this file -> dotted name below ``torch.distributed`` ("" for the module itself)."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.name == "torch.distributed" and item.asname:
                    known[item.asname] = ""
                elif item.name.split(".")[0] == "torch" and not item.asname:
                    known["torch.distributed"] = ""
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for item in node.names:
                if node.module == "torch" and item.name == "distributed":
                    known[item.asname or item.name] = ""
                elif node.module == "torch.distributed" and item.name in COLLECTIVES:
                    known[item.asname or item.name] = item.name
    return known


def _op(call: ast.Call, aliases: dict[str, str]) -> str:
    """The collective that a call performs, or ""."""
    text = ast.unparse(call.func)
    if aliases.get(text):
        return aliases[text]
    owner, _, name = text.rpartition(".")
    return name if name in COLLECTIVES and aliases.get(owner) == "" else ""


def _group(call: ast.Call, op: str) -> str:
    for keyword in call.keywords:
        if keyword.arg == "group":
            return ast.unparse(keyword.value)
    place = COLLECTIVES[op]
    return ast.unparse(call.args[place]) if len(call.args) > place else ""


def _first(
    path: Path, function: ast.FunctionDef, aliases: dict[str, str], words: Sequence[str]
) -> Target | None:
    for statement, in_loop in _statements(function.body, False, words):
        for node in ast.walk(statement):
            op = _op(node, aliases) if isinstance(node, ast.Call) else ""
            if not op or not isinstance(node, ast.Call):
                continue
            first = node.args[0] if node.args else None
            return Target(
                path,
                function.name,
                function.lineno,
                function.end_lineno or function.lineno,
                statement.lineno,
                statement.end_lineno or statement.lineno,
                statement.col_offset,
                op,
                first.id if isinstance(first, ast.Name) else "",
                _group(node, op),
                in_loop,
            )
    return None


def _statements(body: list[ast.stmt], in_loop: bool, words: Sequence[str]) -> Iterator[tuple[ast.stmt, bool]]:
    """Simple statements that every rank reaches, with whether a loop of the function is around them."""
    for statement in body:
        if isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)):
            if not any(isinstance(node, (ast.Lambda, ast.IfExp)) for node in ast.walk(statement)):
                yield statement, in_loop
        elif isinstance(statement, ast.If):
            if any(word in ast.unparse(statement.test).lower() for word in words):
                if _leaves(statement):
                    return
                continue
            yield from _statements(statement.body, in_loop, words)
            yield from _statements(statement.orelse, in_loop, words)
        elif isinstance(statement, (ast.For, ast.While)):
            yield from _statements(statement.body, True, words)
        elif isinstance(statement, (ast.With, ast.Try)):
            yield from _statements(statement.body, in_loop, words)


def _leaves(statement: ast.stmt) -> bool:
    """Whether some ranks do not come past a rank test."""
    jumps = (ast.Return, ast.Raise, ast.Break, ast.Continue)
    return any(isinstance(node, jumps) for node in ast.walk(statement))

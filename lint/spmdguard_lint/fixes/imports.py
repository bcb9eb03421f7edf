"""How a name of another module can be written in a file, and the import that it needs there.

An import is extended where the file has one of the same module at its top, else a new one goes to the group of
its kind (the standard library, or the others) in the order of the group. A name that the file uses for something
else is written with its module before it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence

import libcst as cst

from .rewrite import Rewrite
from .script import Script, Step

MAX_WIDTH = 100


def import_name(rewrite: Rewrite, module: str, name: str) -> str | None:
    """How to write ``module.name`` in the file, adding what import it needs; None where it cannot be written."""
    known = rewrite.names.get((module, name)) or _import_name(rewrite, module, name)
    if known is not None:
        rewrite.names[module, name] = known
    return known


def _import_name(rewrite: Rewrite, module: str, name: str) -> str | None:
    script = rewrite.script
    for bound, dotted in _imported(script):
        if dotted == f"{module}.{name}":
            return bound
        if dotted == module:
            return f"{bound}.{name}"
    taken = bound_names(script.tree)
    if name not in taken:
        _add(rewrite, module, name)
        return name
    if module.split(".")[0] in taken:
        return None
    _insert(rewrite, module, cst.parse_statement(f"import {module}", script.module.config_for_parsing))  # type: ignore[arg-type]  # one line
    return f"{module}.{name}"


def _imported(script: Script) -> Iterator[tuple[str, str]]:
    """What the imports at the top of the file bind: (name, dotted name), those of whole modules last."""
    modules: list[tuple[str, str]] = []
    for node in script.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            modules += [(alias.asname or alias.name, alias.name) for alias in node.names]
    yield from modules


def bound_names(tree: ast.Module) -> set[str]:
    """Every name that the file binds anywhere."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
    return names


def _add(rewrite: Rewrite, module: str, name: str) -> None:
    for step, line in _top_imports(rewrite.script):
        known = isinstance(line, cst.ImportFrom) and _module_of(line) == module
        if known and _extend(rewrite, step, name):
            return
    for made in (*rewrite.ahead.values(), *rewrite.behind.values()):
        for index, node in enumerate(made):
            longer = _with_name(rewrite, node, module, name)
            if longer is not None:
                made[index] = longer
                return
    line = cst.ImportFrom(module=_dotted(module), names=[cst.ImportAlias(cst.Name(name))])
    _insert(rewrite, module, cst.SimpleStatementLine([line]))


def _extend(rewrite: Rewrite, step: cst.SimpleStatementLine, name: str) -> bool:
    """Put a name into an import, in the order of the names."""
    now = rewrite.instead.get(step, (step,))[0]  # another name may have been put into it already
    node = step.body[0]
    assert isinstance(node, cst.ImportFrom)
    longer = _with_name(rewrite, now, _module_of(node), name)
    if longer is not None:
        rewrite.replace(step, longer)
    return longer is not None


def _with_name(rewrite: Rewrite, step: cst.CSTNode, module: str, name: str) -> cst.SimpleStatementLine | None:
    """An import from ``module`` with one more name, where a statement is such an import and has the room."""
    line = step.body[0] if isinstance(step, cst.SimpleStatementLine) else None
    if not isinstance(line, cst.ImportFrom) or isinstance(line.names, cst.ImportStar):
        return None
    if _module_of(line) != module:
        return None
    assert isinstance(step, cst.SimpleStatementLine)
    names = list(line.names)
    position = next((i for i, alias in enumerate(names) if _plain(alias) > name), len(names))
    comma = _comma(line, names)
    if position == len(names):
        names.append(cst.ImportAlias(cst.Name(name), comma=names[-1].comma))
        names[-2] = names[-2].with_changes(comma=comma)
    else:
        names.insert(position, cst.ImportAlias(cst.Name(name), comma=comma))
    longer = line.with_changes(names=names)
    if line.lpar is None and len(rewrite.script.code(longer)) > MAX_WIDTH:
        return None
    return step.with_changes(body=[longer])


def _comma(line: cst.ImportFrom, names: Sequence[cst.ImportAlias]) -> cst.Comma:
    """The comma between two names, laid out as in the rest of the import."""
    if len(names) > 1 and isinstance(names[0].comma, cst.Comma):
        return names[0].comma
    space = line.lpar.whitespace_after if line.lpar is not None else None
    if isinstance(space, cst.ParenthesizedWhitespace):
        return cst.Comma(whitespace_after=space)
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def _plain(alias: cst.ImportAlias) -> str:
    return alias.name.value if isinstance(alias.name, cst.Name) else ""


def _insert(rewrite: Rewrite, module: str, statement: cst.SimpleStatementLine) -> None:
    """Put a new import where its module belongs."""
    groups = _groups(rewrite.script)
    standard = _is_standard(module)
    fitting = [
        g for g in groups if any(_is_standard(_module_of(n)) is standard and not _is_future(n) for _, n in g)
    ]
    if fitting:
        _insert_sorted(rewrite, fitting[0], module, statement)
    elif groups and (not standard or _is_future(groups[0][0][1])):
        rewrite.after(groups[-1][-1][0] if not standard else groups[0][-1][0], _spaced(statement))
    else:
        _insert_on_top(rewrite, statement, before_imports=bool(groups))


def _insert_sorted(
    rewrite: Rewrite,
    group: Sequence[tuple[cst.SimpleStatementLine, cst.Import | cst.ImportFrom]],
    module: str,
    statement: cst.SimpleStatementLine,
) -> None:
    key = (isinstance(statement.body[0], cst.ImportFrom), module)
    later = next(((s, n) for s, n in group if (isinstance(n, cst.ImportFrom), _module_of(n)) > key), None)
    if later is None:
        rewrite.after(group[-1][0], statement)
    elif later[0] is group[0][0]:
        first = later[0]
        rewrite.before(first, statement.with_changes(leading_lines=first.leading_lines))
        rewrite.replace(first, *(rewrite.instead.get(first) or (first,)))
        rewrite.instead[first] = [
            node.with_changes(leading_lines=()) if isinstance(node, cst.SimpleStatementLine) else node
            for node in rewrite.instead[first]
        ]
    else:
        rewrite.before(later[0], statement)


def _insert_on_top(rewrite: Rewrite, statement: cst.SimpleStatementLine, *, before_imports: bool) -> None:
    """Behind the docstring, before everything else."""
    body: Sequence[Step] = rewrite.script.module.body
    first = next((step for step in body if not _is_docstring(step)), None)
    if first is None:
        rewrite.after(body[-1], _spaced(statement))
        return
    if first is body[0]:
        rewrite.before(first, statement)
        if not any(not line.comment for line in first.leading_lines[:1]):
            spaced = first.with_changes(leading_lines=(cst.EmptyLine(indent=False), *first.leading_lines))
            rewrite.instead.setdefault(first, (spaced,))
    else:
        rewrite.before(first, _spaced(statement))


def _spaced(statement: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
    return statement.with_changes(leading_lines=(cst.EmptyLine(indent=False),))


def _groups(script: Script) -> list[list[tuple[cst.SimpleStatementLine, cst.Import | cst.ImportFrom]]]:
    """The imports at the top, split at blank lines."""
    groups: list[list[tuple[cst.SimpleStatementLine, cst.Import | cst.ImportFrom]]] = []
    for step, node in _top_imports(script):
        blank = any(line.comment is None for line in step.leading_lines)
        if not groups or blank:
            groups.append([])
        groups[-1].append((step, node))
    return groups


def _top_imports(script: Script) -> Iterator[tuple[cst.SimpleStatementLine, cst.Import | cst.ImportFrom]]:
    """The import statements before anything but the docstring."""
    for step in script.module.body:
        if not isinstance(step, cst.SimpleStatementLine) or _is_docstring(step):
            if isinstance(step, cst.SimpleStatementLine):
                continue
            return
        node = step.body[0]
        if not isinstance(node, (cst.Import, cst.ImportFrom)) or len(step.body) != 1:
            return
        yield step, node


def _is_docstring(step: cst.BaseStatement) -> bool:
    if not isinstance(step, cst.SimpleStatementLine) or not isinstance(step.body[0], cst.Expr):
        return False
    return isinstance(step.body[0].value, (cst.SimpleString, cst.ConcatenatedString))


def _module_of(node: cst.Import | cst.ImportFrom) -> str:
    """The module that an import names, with its leading dots."""
    if isinstance(node, cst.Import):
        return _text(node.names[0].name)
    return "." * len(node.relative) + (_text(node.module) if node.module is not None else "")


def _text(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_text(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def _dotted(module: str) -> cst.Name | cst.Attribute:
    made: cst.Name | cst.Attribute | None = None
    for part in module.split("."):
        made = cst.Name(part) if made is None else cst.Attribute(made, cst.Name(part))
    assert made is not None
    return made


def _is_standard(module: str) -> bool:
    return module.split(".")[0] in sys.stdlib_module_names


def _is_future(node: cst.Import | cst.ImportFrom) -> bool:
    return _module_of(node) == "__future__"

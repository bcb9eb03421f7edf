"""Walking and unparsing give what ``ast.walk`` (but for contexts and operators) and ``ast.unparse`` give."""

import ast
import sys
from pathlib import Path

import pytest
from spmdguard_lint.source.unparsing import unparse
from spmdguard_lint.source.walking import children, walk

_LEFT_OUT = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)
_FILES = sorted(Path(ast.__file__).parent.glob("[a-d]*.py")) + sorted(Path(__file__).parent.glob("*.py"))
_SAMPLES = [
    "match x:\n case {'a': 1, **rest} | [1, *more] | P(1, key=k) as whole if x: pass\n case None: pass",
    "global a\nimport a.b as c\nfrom . import d as e\ntry: pass\nexcept E as f: pass",
    "x = {**a, 'b': 1}\ndef f(a, *, b, c=1, **k) -> int: nonlocal_ = lambda: f'{a!r:>{b}}'",
    "async def f():\n async with a as b: return [x async for x in y if not x < -1 <= 2]",
    "x: int = 1\nx += 1\ny = a if b else (yield c)",
    *(["type A[T: int] = list[T]\nclass B[*Ts, **P]: pass"] if sys.version_info >= (3, 12) else []),
]


@pytest.mark.parametrize("text", [*_SAMPLES, *(file.read_text(encoding="utf-8") for file in _FILES)])
def test_the_same_nodes_in_the_same_order(text: str) -> None:
    """Every node that can be asked for alone comes, at the place where ``ast.walk`` has it."""
    tree = ast.parse(text)
    expected = [node for node in ast.walk(tree) if not isinstance(node, _LEFT_OUT)]
    assert expected == list(walk(tree))
    for node in expected:
        below = [child for child in ast.iter_child_nodes(node) if not isinstance(child, _LEFT_OUT)]
        assert below == children(node)


@pytest.mark.parametrize("text", [*_SAMPLES, *(file.read_text(encoding="utf-8") for file in _FILES[::4])])
def test_the_same_source_form(text: str) -> None:
    """Whatever an expression holds, its form is that of ``ast.unparse``."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.expr):
            assert ast.unparse(node) == unparse(node)


@pytest.mark.parametrize(
    "text",
    [
        "a and b == c and d != e",
        "a or b == c or d or e == f",
        "(a + b).c[d](*e, **f, g=-1)",
        "not (a and b) or -x.y == 'it''s'",
        "(1).real + 1 .imag",
        "x[1, 2], x[1:2], x[(1,)], (x,), (), []",
        "u'a' + b'c' + f'{d}' + '\\n'",
        "1e999 * 2j - ...",
        "f(x for x in y)",
        "(a < b) < c",
        "-(-1) ** 2",
        "f((yield), (z := 1), lambda: 0)",
    ],
)
def test_the_same_brackets(text: str) -> None:
    """Where operands need brackets, they have them."""
    node = ast.parse(text, mode="eval").body
    assert ast.unparse(node) == unparse(node)

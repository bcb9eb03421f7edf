"""Reading grammar newer than the running Python: the tree is the one that ``ast.parse`` would build."""

from __future__ import annotations

import ast
import sys
import sysconfig
import warnings
from pathlib import Path

import pytest
from spmdguard_lint.source.newer_syntax import parse_newer

from tests.lint.fuzzing.trees import without_empty_texts

REAL_FSTRING_POSITIONS = sys.version_info >= (3, 12)

# One construct each; read by every supported interpreter, so that ``ast.parse`` is the oracle.
SNIPPETS = """
x = 1; y = 2
x: int
x.y: int = 3
x[0]: int = 3
a = b = c, *d = 1, 2,
a += 1; a -= 1; a *= 1; a /= 1; a //= 1; a %= 1; a **= 1; a @= 1; a <<= 1; a >>= 1; a |= 1; a ^= 1; a &= 1
del a, (b, c), [d], e.f, g[0]
del (a)
del (a, b)
(a, b), [c, *d] = e
(a), b = ((c)), (d)
x = ()
x = (((1, 2)))
x = ((1,),)
pass
assert a, (b)
assert (a)
raise
raise A from (b)
import a, b.c as d
from . import a
from ...b.c import (d as e, f,)
from a import *
global a, b
x = (a + b) * -c ** ~d // (e @ f) % g << 1 >> 2 | 3 ^ 4 & 5
x = a and b and c or not d and (e and f)
x = (a and b) and c
x = a < b <= c != d is not e not in f
x = (a) if (b) else (c)
x = lambda: 0
x = lambda a, /, b=1, *c, d, e=(2), **f: (a)
x = f(a, *b, c=(1), **d, e=2)(g)[h].i
x = f(a for a in b)
x = f((a for a in b))
x = f ( a for a in b if c )
x = f((a for a in b), 1)
x = a[1:2], a[:], a[::], a[1::2], a[:, 1, ...], a[1,], a[(1, 2)], a[(b):(c)], a[b : c : ]
x = [a, *b], {a, *b}, {a: b, **c}, {}, []
x = [a for b, *c in d if e if f for g in h]
x = {a for a in b}, {a: b for a in c}, (a for a in b)
x = True, False, None, ..., 0x_ff, 0b1, 1_000, 1.5e3, 2j, 0
x = 'a' "b" 'c\\n' r'\\d' if 0 else u'é' '\\N{EM DASH}', f'\\N{EM DASH}{a}{{'
x = b'a' b"b"
x = '''a
b''', 1
if (y := (1)): pass
print(a := 1)
x = f'', f'a', f'{a}', f'{a!r}', f'{a:>{b}.{c}}', f'{a=}', f'{ a = !s:x}', f'{{{a}}}' 'b' f'{c}d'
x = f'a\\n{b}\\t{{' rf'\\d{a}\\w'
x = f'{(lambda: 1)}{ {1: 2}[1] }'
x = (f'a'
     'b' f"{c}")
'é', f(x), 'ü' + y; z
ﬁ = ªb
x = a\\
    + b
@a
@b.c(d)
class A(B, *C, m=D, **E):
    '''doc'''
    x = 1
class A: pass
class A(): x = 1; y = 2
@d
async def f(a, b: int = 1, *, c: str, **d: (float)) -> (int):
    await a
    async for b in c: pass
    else: pass
    async with a as b, c: return
    return [x async for x in y]
def f(a, b=1, /, c=2, *args: int, d, **kw): yield; yield a; yield a, b; x = yield from c; return (yield)
def f(
    a,
): # comment
    nonlocal_ = 1

    # trailing comment
x = 1
def f():
    def g():
        nonlocal a
        return *a, b
if a:
    b
elif c:
    d
elif (e):
    f
else:
    g
while a:
    break
else:
    continue
for a, b in c, d: pass
for (a, b) in [c]:
    pass
else:
    pass
with a: pass
with (a): pass
with (a) as b, c as (d, e): pass
with (a as b, c,): pass
with (yield): pass
with (a, b) as c: pass
try: a
except: b
try:
    a
except A: b
except (B, C) as d:
    e
else:
    f
finally:
    g
try: a
finally: b
match a:
    case 1 | -1 | 1.5 | 1+2j | 'a' 'b' | b'c' | None | True | d.e: pass
    case (1): pass
    case [a, *b] | [*_]: pass
    case (a, b) | (c,) | (): pass
    case a, b,: pass
    case *a, b: pass
    case {'a': b, c.d: _, **e}: pass
    case {}: pass
    case A(): pass
    case A.B(c, d=e, f=_) as g if (h): pass
    case (A() as b) | C(): pass
    case ((x)): pass
    case _: pass
match a, b: # comment
    case x: pass
match (a):
    case x: pass
"""


def snippets() -> list[str]:
    """The statements of ``SNIPPETS``, each with its decorators."""
    tree = ast.parse(SNIPPETS)
    lines = SNIPPETS.split("\n")
    starts = [
        min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) for node in tree.body
    ]
    starts = sorted(set(starts))
    return [
        "\n".join(lines[a - 1 : b - 1]) + "\n" for a, b in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]


def dump(tree: ast.AST) -> str:
    """All of a tree, positions included; inside f-strings only where the interpreter knows them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and not REAL_FSTRING_POSITIONS:
            for inner in ast.walk(node):
                if inner is not node and hasattr(inner, "lineno"):
                    inner.lineno = inner.col_offset = inner.end_lineno = inner.end_col_offset = 0
    return ast.dump(without_empty_texts(tree), include_attributes=True)


def oracle(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


@pytest.mark.parametrize("text", snippets())
def test_equals_ast_parse_on_every_construct(text: str):
    """Each construct of the grammar becomes the node, with the positions, that ``ast.parse`` gives."""
    assert dump(oracle(text)) == dump(parse_newer(text, "snippet.py"))


def test_equals_ast_parse_on_all_constructs_in_one_file():
    """Positions do not drift over a file that holds everything."""
    assert dump(oracle(SNIPPETS)) == dump(parse_newer(SNIPPETS, "snippets.py"))


STDLIB = [
    "abc",
    "argparse",
    "bisect",
    "calendar",
    "configparser",
    "contextlib",
    "dataclasses",
    "difflib",
    "enum",
]
STDLIB += [
    "fractions",
    "functools",
    "inspect",
    "pathlib",
    "pprint",
    "queue",
    "random",
    "statistics",
    "textwrap",
]


@pytest.mark.parametrize("name", STDLIB)
def test_equals_ast_parse_on_the_standard_library(name: str):
    """Real modules are read as ``ast.parse`` reads them."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    path = folder / f"{name}.py" if (folder / f"{name}.py").exists() else folder / name / "__init__.py"
    text = path.read_text(encoding="utf-8")
    assert dump(oracle(text)) == dump(parse_newer(text, str(path)))


# Newer grammar, and an older spelling of the tree it becomes.
NEWER = [
    ("x = a[*b, 1]", "x = a[(*b, 1)]"),
    ("type X = int", "X = int"),
    ("type X[T: (int, str) = int] = list[T]", "X = list[T]"),
    ("def f[T, *Ts, **P](a: T) -> T: return a", "def f(a: T) -> T: return a"),
    ("async def f[T](a: T): await a", "async def f(a: T): await a"),
    ("class A[T = int](B[T], m=1): x: T", "class A(B[T], m=1): x: T"),
    ('x = f"{a["b"]} {f"{c}"}"', "x = f\"{a['b']} {f'{c}'}\""),
    ("x = f'{a + # why\n b}'", "x = f'{a + b}'"),
    ("x = f'{'\\n'.join(a)}'", "x = f'{_}'"),
    ("x = t'a{b!r:>{c}}d'", "x = f'a{b!r:>{c}}d'"),
    ("try: a\nexcept A, B: b", "try: a\nexcept (A, B): b"),
    ("x = [*a for a in b]", "x = [(*a,) for a in b]"),
]


@pytest.mark.parametrize(("newer", "older"), NEWER)
def test_newer_grammar_becomes_its_nearest_older_meaning(newer: str, older: str):
    """Grammar of Python 3.11 to 3.15 is read by every interpreter that the linter runs on."""

    class Plain(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            return ast.Name("_", ast.Load()) if ast.unparse(node) == "'\\n'.join(a)" else node

        def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
            if isinstance(node.elt, ast.Tuple):
                node.elt = node.elt.elts[0]
            return node

    found = ast.dump(Plain().visit(parse_newer(newer, "newer.py")))
    assert ast.dump(without_empty_texts(Plain().visit(ast.parse(older)))) == found


def test_except_star_is_kept_where_the_interpreter_has_it():
    """``except*`` is a ``TryStar``; before Python 3.11 it is a plain ``Try``."""
    statement = parse_newer("try: a\nexcept* A as e: b\n", "newer.py").body[0]
    assert type(statement).__name__ == ("TryStar" if sys.version_info >= (3, 11) else "Try")
    assert isinstance(statement.handlers[0].type, ast.Name)
    assert statement.handlers[0].name == "e"


def test_positions_in_newer_grammar_point_at_the_source():
    """Every name of a file in newer grammar is found in the text at its node's position."""
    text = 'type é = int\ndef ü[T](a: T): return f"é{a["é"]}{T}", a\ntry: g\nexcept* A, B: h\n'
    tree = parse_newer(text, "newer.py")
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    assert len(names) == 10
    assert [name.id for name in names] == [ast.get_source_segment(text, name) for name in names]


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_newlines_and_byte_order_mark_change_nothing(newline: str):
    """Any newline convention and a byte order mark give the tree of the plain text."""
    text = "type X = int\nif X:\n    y = '''a\n    b'''\n"
    expected = dump(parse_newer(text, "a.py"))
    assert expected == dump(parse_newer("\ufeff" + text.replace("\n", newline), "a.py"))


@pytest.mark.parametrize(
    ("text", "line"),
    [("x = 1\ny = (\n", 2), ("print 1\n", 1), ("a\n  b\n", 2), ("x = '\\x0'\n", 1), ("\0", 1), ("f'{'", 1)],
)
def test_text_that_nobody_can_read_is_a_syntax_error(text: str, line: int):
    """What libcst cannot read either raises a ``SyntaxError`` that names file and line."""
    with pytest.raises(SyntaxError) as caught:
        parse_newer(text, "bad.py")
    assert caught.value.filename == "bad.py"
    assert caught.value.lineno is not None and abs(caught.value.lineno - line) <= 1


DEEP = {
    "parentheses": "(" * 100_000 + ")" * 100_000,
    "calls": "f(" * 1_000 + ")" * 1_000,
    "blocks": "".join(" " * depth + "if x:\n" for depth in range(5_000)),
    "sum": "x = " + " + ".join("a" * 20_000),
    "not": "x = " + "not " * 20_000 + "a",
    "attributes": "x" + ".a" * 20_000,
    "subscripts": "x" + "[0]" * 20_000,
    "lambdas": "lambda: " * 20_000 + "0",
    "strings": "x = (" + "'a' " * 20_000 + ")",
    "elif": "if a: pass\n" + "elif a: pass\n" * 20_000,
    "patterns": "match x:\n case " + "[" * 40 + "]" * 40 + ": pass",
    "replacement fields": "f'" + "{a:" * 1_000 + "}" * 1_000 + "'",
    "nested f-strings": "f'{" * 1_000 + "}'" * 1_000,
    "chains in brackets": ("not " * 150 + "(") * 150 + ")" * 150,
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_nesting_is_refused_before_the_native_parser_sees_it(name: str):
    """Nesting that would overflow or stall the native parser is a ``SyntaxError``, not a dead process."""
    with pytest.raises(SyntaxError):
        parse_newer(DEEP[name] + "\n", "deep.py")


BEARABLE = {
    "parentheses": "(" * 150 + "a" + ")" * 150,
    "blocks": "".join(" " * depth + "if x:\n" for depth in range(90)) + " " * 90 + "pass",
    "sum": "x = " + " + ".join("a" * 900),
    "strings": "x = (" + "'a' " * 1_500 + ")",
    "elif": "if a: pass\n" + "elif a: pass\n" * 500,
    "replacement fields": "x = f'" + "{a} " * 2_500 + "'",
    "f-strings": "x = (" + "f'{a}' " * 900 + ")",
    "calls": "a" + ".b()" * 300,
    "list": "x = [" + "a + b, " * 3_000 + "]",
    "statements": "x = a + b\n" * 3_000,
    "brackets in strings": "x = ['(', '[[[', \"{\", f'{{{a}', '''((''']  # (((\n" * 500,
}


@pytest.mark.parametrize("name", BEARABLE)
def test_long_and_moderately_deep_sources_are_read(name: str):
    """Length is no depth: neither long lists nor brackets in strings and comments are refused."""
    assert parse_newer(BEARABLE[name] + "\n", "long.py").body


def test_recursion_limit_and_stack_size_are_as_before():
    """Reading leaves the interpreter's limits alone."""
    before = sys.getrecursionlimit()
    parse_newer("x = 1\n", "a.py")
    assert before == sys.getrecursionlimit()

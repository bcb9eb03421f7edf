"""Expressions other than strings."""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import libcst as cst

if TYPE_CHECKING:
    from .converter import Converter

_CONSTANT_NAMES = {"True": True, "False": False, "None": None}

# libcst names an operator class as ast does, but for these; "AddAssign" is "Add".
_OPERATOR_NAMES = {
    "Add": "Add",
    "Subtract": "Sub",
    "Multiply": "Mult",
    "MatrixMultiply": "MatMult",
    "Divide": "Div",
    "Modulo": "Mod",
    "Power": "Pow",
    "LeftShift": "LShift",
    "RightShift": "RShift",
    "BitOr": "BitOr",
    "BitXor": "BitXor",
    "BitAnd": "BitAnd",
    "FloorDivide": "FloorDiv",
    "BitInvert": "Invert",
    "Not": "Not",
    "Plus": "UAdd",
    "Minus": "USub",
    "And": "And",
    "Or": "Or",
    "Equal": "Eq",
    "NotEqual": "NotEq",
    "LessThan": "Lt",
    "LessThanEqual": "LtE",
    "GreaterThan": "Gt",
    "GreaterThanEqual": "GtE",
    "Is": "Is",
    "IsNot": "IsNot",
    "In": "In",
    "NotIn": "NotIn",
}


def identifier(name: cst.Name) -> str:
    """The name as the interpreter stores it: in normal form KC."""
    return name.value if name.value.isascii() else unicodedata.normalize("NFKC", name.value)


def operator(node: cst.CSTNode) -> Any:
    """The ``ast`` operator of a libcst operator, in-place ones included."""
    return getattr(ast, _OPERATOR_NAMES[type(node).__name__.removesuffix("Assign")])()


def _name(c: Converter, node: cst.Name) -> ast.expr:
    if node.value in _CONSTANT_NAMES:
        return c.at(ast.Constant(value=_CONSTANT_NAMES[node.value], kind=None), node)
    return c.at(ast.Name(id=identifier(node), ctx=ast.Load()), node)


def _number(c: Converter, node: Any) -> ast.expr:
    return c.at(ast.Constant(value=ast.literal_eval(node.value), kind=None), node)


def _ellipsis(c: Converter, node: cst.Ellipsis) -> ast.expr:
    return c.at(ast.Constant(value=..., kind=None), node)


def _attribute(c: Converter, node: cst.Attribute) -> ast.expr:
    return c.at(ast.Attribute(value=c.expr(node.value), attr=identifier(node.attr), ctx=ast.Load()), node)


def _unary(c: Converter, node: cst.UnaryOperation) -> ast.expr:
    return c.at(ast.UnaryOp(op=operator(node.operator), operand=c.expr(node.expression)), node)


def _binary(c: Converter, node: cst.BinaryOperation) -> ast.expr:
    made = ast.BinOp(left=c.expr(node.left), op=operator(node.operator), right=c.expr(node.right))
    return c.at(made, node)


def _boolean(c: Converter, node: cst.BooleanOperation) -> ast.expr:
    """``a and b and c`` is one node in ``ast``, unless parentheses keep the parts apart."""
    kind = type(node.operator)
    operands: list[Any] = [node.right]
    left = node.left
    while isinstance(left, cst.BooleanOperation) and isinstance(left.operator, kind) and not left.lpar:
        operands.append(left.right)
        left = left.left
    operands.append(left)
    values = [c.expr(operand) for operand in reversed(operands)]
    return c.at(ast.BoolOp(op=operator(node.operator), values=values), node)


def _comparison(c: Converter, node: cst.Comparison) -> ast.expr:
    made = ast.Compare(
        left=c.expr(node.left),
        ops=[operator(target.operator) for target in node.comparisons],
        comparators=[c.expr(target.comparator) for target in node.comparisons],
    )
    return c.at(made, node)


def _if_expression(c: Converter, node: cst.IfExp) -> ast.expr:
    made = ast.IfExp(test=c.expr(node.test), body=c.expr(node.body), orelse=c.expr(node.orelse))
    return c.at(made, node)


def _lambda(c: Converter, node: cst.Lambda) -> ast.expr:
    return c.at(ast.Lambda(args=parameters(c, node.params), body=c.expr(node.body)), node)


def parameters(c: Converter, node: cst.Parameters) -> ast.arguments:
    """The parameters of a function or lambda."""
    positional = [*node.posonly_params, *node.params]
    star = node.star_arg
    return ast.arguments(
        posonlyargs=[_parameter(c, param) for param in node.posonly_params],
        args=[_parameter(c, param) for param in node.params],
        vararg=_parameter(c, star) if isinstance(star, cst.Param) else None,
        kwonlyargs=[_parameter(c, param) for param in node.kwonly_params],
        kw_defaults=[c.optional(param.default) for param in node.kwonly_params],
        kwarg=None if node.star_kwarg is None else _parameter(c, node.star_kwarg),
        defaults=[c.expr(param.default) for param in positional if param.default is not None],
    )


def _parameter(c: Converter, node: cst.Param) -> ast.arg:
    annotation = None if node.annotation is None else node.annotation.annotation
    made = ast.arg(arg=identifier(node.name), annotation=c.optional(annotation), type_comment=None)
    end = c.spans.end(node.name) if annotation is None else c.spans.outer_end(annotation)
    return c.spans.place(made, c.spans.start(node.name), end)


def _call(c: Converter, node: cst.Call) -> ast.expr:
    function = c.expr(node.func)
    args, keywords = arguments(c, node.args)
    if len(args) == 1 and isinstance(args[0], ast.GeneratorExp) and not _parenthesised(node.args[0].value):
        # The call's own parentheses count as those of a lone generator expression.
        c.spans.place(args[0], c.spans.end(node.whitespace_after_func), c.spans.end(node))
    return c.at(ast.Call(func=function, args=args, keywords=keywords), node)


def _parenthesised(node: Any) -> bool:
    return bool(node.lpar)


def arguments(c: Converter, nodes: Sequence[cst.Arg]) -> tuple[list[ast.expr], list[ast.keyword]]:
    """Positional and keyword arguments of a call or class."""
    args: list[ast.expr] = []
    keywords: list[ast.keyword] = []
    for node in nodes:
        value = c.expr(node.value)
        if node.keyword is not None or node.star == "**":
            name = None if node.keyword is None else identifier(node.keyword)
            keywords.append(c.at(ast.keyword(arg=name, value=value), node))
        elif node.star == "*":
            args.append(c.at(ast.Starred(value=value, ctx=ast.Load()), node))
        else:
            args.append(value)
    return args, keywords


def _tuple(c: Converter, node: cst.Tuple) -> ast.expr:
    made = ast.Tuple(elts=_elements(c, node.elements), ctx=ast.Load())
    if node.lpar:  # the innermost pair is the tuple's own
        return c.spans.place(made, c.spans.start(node.lpar[-1]), c.spans.end(node.rpar[0]))
    return c.spans.place(made, c.spans.start(node), c.spans.comma_end(node.elements[-1]))


def _elements(c: Converter, nodes: Sequence[Any]) -> list[ast.expr]:
    return [c.expr(node if isinstance(node, cst.StarredElement) else node.value) for node in nodes]


def _list(c: Converter, node: cst.List) -> ast.expr:
    return c.at(ast.List(elts=_elements(c, node.elements), ctx=ast.Load()), node)


def _set(c: Converter, node: cst.Set) -> ast.expr:
    return c.at(ast.Set(elts=_elements(c, node.elements)), node)


def _starred(c: Converter, node: cst.StarredElement) -> ast.expr:
    made = ast.Starred(value=c.expr(node.value), ctx=ast.Load())
    return c.spans.place(made, c.spans.start(node), c.spans.outer_end(node.value))


def _dict(c: Converter, node: cst.Dict) -> ast.expr:
    keys: list[Any] = []
    for element in node.elements:
        keys.append(c.expr(element.key) if isinstance(element, cst.DictElement) else None)
    return c.at(ast.Dict(keys=keys, values=[c.expr(element.value) for element in node.elements]), node)


def _generators(c: Converter, node: cst.CompFor) -> list[ast.comprehension]:
    made: list[ast.comprehension] = []
    level: cst.CompFor | None = node
    while level is not None:
        made.append(
            ast.comprehension(
                target=c.expr(level.target, ast.Store()),
                iter=c.expr(level.iter),
                ifs=[c.expr(clause.test) for clause in level.ifs],
                is_async=int(level.asynchronous is not None),
            )
        )
        level = level.inner_for_in
    return made


def _generator(c: Converter, node: cst.GeneratorExp) -> ast.expr:
    made = ast.GeneratorExp(elt=c.expr(node.elt), generators=_generators(c, node.for_in))
    if node.lpar:
        return c.spans.place(made, c.spans.start(node.lpar[-1]), c.spans.end(node.rpar[0]))
    return c.at(made, node)


def _list_comprehension(c: Converter, node: cst.ListComp) -> ast.expr:
    return c.at(ast.ListComp(elt=c.expr(node.elt), generators=_generators(c, node.for_in)), node)


def _set_comprehension(c: Converter, node: cst.SetComp) -> ast.expr:
    return c.at(ast.SetComp(elt=c.expr(node.elt), generators=_generators(c, node.for_in)), node)


def _dict_comprehension(c: Converter, node: cst.DictComp) -> ast.expr:
    made = ast.DictComp(
        key=c.expr(node.key), value=c.expr(node.value), generators=_generators(c, node.for_in)
    )
    return c.at(made, node)


def _starred_dict_comprehension(c: Converter, node: Any) -> ast.expr:
    """``{**d for d in ds}`` (PEP 798): the nearest node is a comprehension of values under no key."""
    value = c.expr(node.value)
    key = ast.copy_location(ast.Constant(value=None, kind=None), value)
    return c.at(ast.DictComp(key=key, value=value, generators=_generators(c, node.for_in)), node)


def _yield(c: Converter, node: cst.Yield) -> ast.expr:
    if isinstance(node.value, cst.From):
        return c.at(ast.YieldFrom(value=c.expr(node.value.item)), node)
    return c.at(ast.Yield(value=c.optional(node.value)), node)


def _await(c: Converter, node: cst.Await) -> ast.expr:
    return c.at(ast.Await(value=c.expr(node.expression)), node)


def _named(c: Converter, node: cst.NamedExpr) -> ast.expr:
    made = ast.NamedExpr(target=c.expr(node.target, ast.Store()), value=c.expr(node.value))
    return c.at(made, node)


HANDLERS: dict[str, Callable[[Any, Any], ast.expr]] = {
    "Name": _name,
    "Integer": _number,
    "Float": _number,
    "Imaginary": _number,
    "Ellipsis": _ellipsis,
    "Attribute": _attribute,
    "UnaryOperation": _unary,
    "BinaryOperation": _binary,
    "BooleanOperation": _boolean,
    "Comparison": _comparison,
    "IfExp": _if_expression,
    "Lambda": _lambda,
    "Call": _call,
    "Tuple": _tuple,
    "List": _list,
    "Set": _set,
    "StarredElement": _starred,
    "Dict": _dict,
    "GeneratorExp": _generator,
    "ListComp": _list_comprehension,
    "SetComp": _set_comprehension,
    "DictComp": _dict_comprehension,
    "StarredDictComp": _starred_dict_comprehension,
    "Yield": _yield,
    "Await": _await,
    "NamedExpr": _named,
}

"""SPG701: write down the timeout that applies."""

from __future__ import annotations

import libcst as cst

from ..model import Applicability, Finding
from .blocks import expression_from
from .imports import import_name
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script

_MINUTES = {"nccl": 10}
_DEFAULT_MINUTES = 30


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Safe where the backend is written down, because the timeout is then the default that applies anyway."""
    call = script.expression_at(finding.site)
    if not isinstance(call, cst.Call) or any(arg.star for arg in call.args) or len(call.args) > 10:
        return None
    if len([arg for arg in call.args if arg.keyword is None]) > 2:
        return None
    backend = _backend(call)
    minutes = _MINUTES.get(backend or "", _DEFAULT_MINUTES)
    rewrite = Rewrite(script)
    timedelta = import_name(rewrite, "datetime", "timedelta")
    if timedelta is None:
        return None
    value = expression_from(script, f"{timedelta}(minutes={minutes})")
    rewrite.replace(call, call.with_changes(args=with_argument(call, "timeout", value)))
    applicability: Applicability = "safe" if backend in ("nccl", "gloo", "mpi") else "unsafe"
    message = f"write down the timeout: {minutes} minutes, the default of this backend"
    return Proposal(applicability, message, rewrite.code())


def _backend(call: cst.Call) -> str | None:
    """The backend's name where it is a plain string."""
    given = next(
        (arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "backend"), None
    )
    if given is None and call.args and call.args[0].keyword is None:
        given = call.args[0]
    if given is None or not isinstance(given.value, cst.SimpleString):
        return None
    value = given.value.evaluated_value
    return value if isinstance(value, str) else None


def with_argument(call: cst.Call, keyword: str, value: cst.BaseExpression) -> list[cst.Arg]:
    """The arguments of a call and one more, laid out as the others are."""
    tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    made = cst.Arg(value, keyword=cst.Name(keyword), equal=tight)
    if not call.args:
        return [made]
    *before, last = call.args
    between = _bare(before[-1].comma) if before else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    if not before and isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
        between = cst.Comma(whitespace_after=call.whitespace_before_args)
    made = made.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return [*before, last.with_changes(comma=between, whitespace_after_arg=cst.SimpleWhitespace("")), made]


def _bare(comma: cst.Comma | cst.MaybeSentinel) -> cst.Comma | cst.MaybeSentinel:
    """A comma with the line break behind it, without the comments there: those belong to the argument in front."""
    if not isinstance(comma, cst.Comma) or not isinstance(
        comma.whitespace_after, cst.ParenthesizedWhitespace
    ):
        return comma
    space = comma.whitespace_after
    first = space.first_line
    if first.comment is not None:
        first = first.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return comma.with_changes(whitespace_after=space.with_changes(first_line=first, empty_lines=()))

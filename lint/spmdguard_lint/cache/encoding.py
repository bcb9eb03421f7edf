"""Findings as JSON values and back; what does not decode to a finding is a ``ValueError``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

from ..model import Applicability, Certainty, Edit, Finding, Fix, Location, Severity, Site, TrailStep

_T = TypeVar("_T")


def encode(finding: Finding) -> list[Any]:
    """A finding as nested lists, in the order of its fields."""
    fix = finding.fix
    return [
        finding.code,
        finding.name,
        finding.severity,
        finding.certainty,
        finding.message,
        finding.help,
        _from_site(finding.site),
        [[_from_site(step.site), step.message] for step in finding.trail],
        list(finding.diverging),
        list(finding.others),
        None if fix is None else [fix.applicability, fix.message, [_from_edit(edit) for edit in fix.edits]],
        [[name, _from_site(site)] for name, site in finding.marks],
    ]


def decode(data: Any) -> Finding:
    """The finding that ``encode`` was given."""
    try:
        code, name, severity, certainty, message, help_text, site, trail, diverging, others, fix, marks = data
        return Finding(
            _text(code),
            _text(name),
            _one_of(severity, get_args(Severity)),
            _one_of(certainty, get_args(Certainty)),
            _text(message),
            _text(help_text),
            _site(site),
            tuple(TrailStep(_site(place), _text(text)) for place, text in trail),
            _all(_text, diverging),
            _all(_text, others),
            None if fix is None else _fix(fix),
            tuple((_text(mark), _site(place)) for mark, place in marks),
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"not a finding: {error}") from error


def _from_site(site: Site) -> list[Any]:
    return [site.filename, site.start.row, site.start.column, site.end.row, site.end.column]


def _from_edit(edit: Edit) -> list[Any]:
    return [edit.content, _from_site(edit.site)]


def _site(data: Any) -> Site:
    filename, *numbers = data
    first_row, first_column, last_row, last_column = _all(_number, numbers)
    return Site(_text(filename), Location(first_row, first_column), Location(last_row, last_column))


def _fix(data: Any) -> Fix:
    applicability, message, edits = data
    kind: Applicability = _one_of(applicability, get_args(Applicability))
    return Fix(kind, _text(message), tuple(Edit(_text(content), _site(site)) for content, site in edits))


def _all(read: Callable[[Any], _T], items: Any) -> tuple[_T, ...]:
    if not isinstance(items, list):
        raise ValueError(f"expected a list, saw {items!r}")
    return tuple(read(item) for item in items)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, saw {value!r}")
    return value


def _number(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"expected a number, saw {value!r}")
    return value


def _one_of(value: Any, known: tuple[Any, ...]) -> Any:
    if value not in known:
        raise ValueError(f"{value!r} is none of {known}")
    return value

"""The code frame: source lines with the finding underlined and the trail written beside its lines.

Terminology: a *mark* is an underlined span with an optional label. A *block* is the part of the frame that
shows one file; inside a block lines stand in source order, and the numbers in the labels give the trail's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from spmdguard_lint.model import Finding, Site, TrailStep
from spmdguard_lint.report.style import Style, num_cells, printable, wrapped
from spmdguard_lint.source.reading import SourceFile

_MIN_CODE = 24
_MIN_LABEL = 56
_DECIDES = " decides"


@dataclass(frozen=True)
class Mark:
    """A span to underline, with the message of the trail's step ``number`` where that is not 0."""

    site: Site
    label: str
    number: int
    is_finding: bool = False


def frame(finding: Finding, sources: Mapping[str, SourceFile], style: Style) -> Iterator[str]:
    """The frame's lines: the finding's file first, then the other files of its trail."""
    marks = _marks(finding)
    gutter = max(len(str(mark.site.start.row + 1)) for mark in marks)
    filenames = dict.fromkeys(mark.site.filename for mark in marks)
    for index, filename in enumerate(filenames):
        own = [mark for mark in marks if mark.site.filename == filename]
        if index:
            yield _gutter("", gutter, style).rstrip()
        head = style.glyph("╭─▸", "-->") if index == 0 else style.glyph("├─▸", "-->")
        start = own[0].site.start
        place = f"{printable(filename)}:{start.row}:{start.column}"
        note = f"  {finding.name}, {finding.certainty}" if index == 0 else ""
        arrow = style.paint(" " * (gutter + 1) + head, "blue")
        yield f"{arrow} {style.paint(place, 'bold')}{style.paint(note, 'dim')}"
        source = sources.get(filename)
        lines = source.lines if source else ()
        yield from _block(own, lines, finding.severity, gutter, style)


def _marks(finding: Finding) -> list[Mark]:
    """The finding's mark, then the trail's; a step on the finding's own span shares its mark."""
    trail = _each_once(finding.trail)
    steps = [Mark(step.site, printable(step.message), n) for n, step in enumerate(trail, 1)]
    own = next((mark for mark in steps if mark.site == finding.site), None)
    others = [mark for mark in steps if mark is not own]
    return [Mark(finding.site, own.label if own else "", own.number if own else 0, True), *others]


def _each_once(trail: Sequence[TrailStep]) -> list[TrailStep]:
    """The trail with a source and the condition in which it is all as one step: the source, which decides."""
    steps: list[TrailStep] = []
    for step in trail:
        text = step.message.removesuffix(_DECIDES)
        source = next((each for each in steps if _same_expression(each, step, text)), None)
        if source is None or text == step.message:
            steps.append(step)
        else:
            steps[steps.index(source)] = replace(source, message=f"{source.message}, and decides")
    return steps


def _same_expression(source: TrailStep, condition: TrailStep, text: str) -> bool:
    """Whether a step names the condition's expression inside the condition's span."""
    inside = condition.site.start <= source.site.start and source.site.end <= condition.site.end
    same_file = source.site.filename == condition.site.filename
    return same_file and inside and source.message.startswith(f"{text} ")


def _block(
    marks: Sequence[Mark], lines: Sequence[str], severity: str, gutter: int, style: Style
) -> Iterator[str]:
    by_row: dict[int, list[Mark]] = {}
    for mark in marks:
        by_row.setdefault(mark.site.start.row, []).append(mark)
    shown = _rows_to_show(by_row, len(lines))
    previous = shown[0] - 1 if shown else 0
    for row in shown:
        if row != previous + 1:
            yield style.paint(" " * gutter + " " + style.glyph("⋮", ":"), "blue")
        previous = row
        yield from _line(row, lines[row - 1], by_row.get(row, []), severity, gutter, style)
    for row, beyond in by_row.items():
        if row > len(lines):
            for mark in beyond:
                yield from _underline(mark, 0, "", severity, gutter, style)


def _rows_to_show(by_row: Mapping[int, Sequence[Mark]], num_lines: int) -> list[int]:
    """The marked rows, one row around the finding's own, and single rows that would else be left out."""
    rows = {row for row in by_row if row <= num_lines}
    for row, marks in by_row.items():
        if any(mark.is_finding for mark in marks):
            rows |= {near for near in (row - 1, row + 1) if 1 <= near <= num_lines}
    rows |= {row + 1 for row in rows if row + 2 in rows}
    return sorted(rows)


def _gutter(number: str, gutter: int, style: Style) -> str:
    return style.paint(f"{number:>{gutter}} {style.glyph('│', '|')}", "blue") + " "


def _line(
    row: int, text: str, marks: Sequence[Mark], severity: str, gutter: int, style: Style
) -> Iterator[str]:
    """A source line, cut to the terminal's width, and below it the underlines from right to left."""
    room = max(style.width - gutter - 3, _MIN_CODE)
    visible = printable(text)
    spans = {mark: _span(mark, text) for mark in marks}
    anchor = next(
        (span for mark, span in spans.items() if mark.is_finding), min(spans.values(), default=(0, 0))
    )
    cut = _cut(visible, anchor[0], room)
    shown = _clipped(visible, cut, room, style.glyph("…", "~"))
    yield f"{_gutter(str(row), gutter, style)}{shown if marks else style.paint(shown, 'dim')}".rstrip()
    for mark, (start, end) in sorted(spans.items(), key=lambda item: (-item[1][0], item[0].number)):
        before = min(num_cells(visible[cut : max(start, cut)]), room - 1)
        width = max(1, min(num_cells(visible[max(start, cut) : end]), room - before))
        line = "^" if mark.is_finding else style.glyph("─", "-")
        yield from _underline(mark, before, line * width, severity, gutter, style)


def _span(mark: Mark, text: str) -> tuple[int, int]:
    """Where the mark starts and ends in ``printable(text)``; a mark over several rows ends with the first."""
    start = min(mark.site.start.column - 1, len(text))
    end = mark.site.end.column - 1 if mark.site.end.row == mark.site.start.row else len(text.rstrip())
    return len(printable(text[:start])), len(printable(text[: max(end, start)]))


def _cut(visible: str, start: int, room: int) -> int:
    """How many characters to leave out on the left so that the mark at ``start`` is in view."""
    if num_cells(visible) <= room or num_cells(visible[:start]) < room * 2 // 3:
        return 0
    return max(0, start - room // 3)


def _clipped(visible: str, cut: int, room: int, more: str) -> str:
    """``visible`` from ``cut`` on, in at most ``room`` columns, with ``more`` where something is left out."""
    shown = more + visible[cut + 1 :] if cut else visible
    if num_cells(shown) <= room:
        return shown
    taken = 0
    for index, character in enumerate(shown):
        taken += num_cells(character)
        if taken > room - 1:
            return shown[:index] + more
    return shown


def _underline(
    mark: Mark, before: int, underline: str, severity: str, gutter: int, style: Style
) -> Iterator[str]:
    """The underline, and the label beside it, or below it where there is too little room."""
    margin = _gutter("", gutter, style)
    lead = " " * before + style.paint(underline, *((severity, "bold") if mark.is_finding else ("cyan",)))
    if not mark.label:
        yield f"{margin}{lead}"
        return
    room = style.width - gutter - 3
    number = style.number(mark.number)
    indent = before + len(underline) + 1
    wanted = min(_MIN_LABEL, num_cells(mark.label))
    lines = wrapped(mark.label, max(room - indent - len(number) - 1, 1))
    if room - indent - len(number) - 1 >= wanted:
        lead += " "
    else:
        yield f"{margin}{lead}"
        indent = min(before, max(0, room - wanted - len(number) - 1))
        lines = wrapped(mark.label, room - indent - len(number) - 1)
        lead = " " * indent
    yield f"{margin}{lead}{style.paint(f'{number} {lines[0]}', 'cyan')}"
    for line in lines[1:]:
        yield f"{margin}{' ' * (indent + len(number) + 1)}{style.paint(line, 'cyan')}"

"""Rule pages: on a terminal, as Markdown, and as the files of ``docs/rules``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spmdguard_lint.model import RuleInfo
from spmdguard_lint.report.style import Style
from spmdguard_lint.rules import registry

_FAMILIES = {
    "1": "Reachability: not every rank reaches the collective",
    "2": "Exceptions: one rank's error changes the course of the others",
    "3": "Agreement: ranks decide alone what they must decide together",
    "4": "Loops: ranks loop a different number of times",
    "5": "Checkpoints",
    "6": "Life cycle of the process group",
    "7": "Launch",
    "9": "About the run of the linter itself",
}
_NOTICE = (
    "<!-- Written by `spmdguard rule --write-docs docs/rules` from the rule's own file; edit it there. -->\n"
)


def print_page(info: RuleInfo, style: Style) -> None:
    """The page, set for the terminal where there is one, else as Markdown."""
    facts = f"{info.severity}, {info.status}" + (f", {info.fix} fix" if info.fix else "")
    if not style.colour:
        print(f"{info.page.rstrip()}\n\n{facts}")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(width=min(style.width, 100), force_terminal=True)
    console.print(Markdown(info.page))
    console.print(facts, style="dim")


def table_lines(rules: Sequence[RuleInfo], style: Style) -> list[str]:
    """One line a rule, by family."""
    lines: list[str] = []
    family = ""
    widest = max((len(info.name) for info in rules), default=0)
    for info in rules:
        if info.code[3] != family:
            family = info.code[3]
            lines += ["", style.paint(_FAMILIES.get(family, ""), "bold")]
        severity = style.paint(f"{info.severity:<7}", info.severity)
        preview = "" if info.status == "stable" else style.paint("  preview", "dim")
        lines.append(f"  {info.code}  {info.name:<{widest}}  {severity}{preview}")
    lines += ["", style.paint("Merged into others", "bold")]
    lines += [f"  - {registry.merge_note(code)}" for code in registry.MERGED]
    return lines[1:]


def documents(rules: Sequence[RuleInfo]) -> dict[str, str]:
    """File name and text of every page below ``docs/rules``, and of their index."""
    pages = {f"{info.code}.md": _document(info) for info in rules}
    return {**pages, "index.md": _index(rules)}


def write_documents(rules: Sequence[RuleInfo], folder: Path) -> list[Path]:
    """Write ``documents`` to ``folder``, and remove pages of rules that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = documents(rules)
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    for page in folder.glob("SPG*.md"):
        if page.name not in wanted:
            page.unlink()
    return [folder / name for name in wanted]


def _document(info: RuleInfo) -> str:
    title, _, rest = info.page.partition("\n")
    fix = f" · Fix: **{info.fix}**" if info.fix else ""
    facts = f"Severity: **{info.severity}** · Status: **{info.status}**{fix} · [All rules](index.md)"
    return f"{_NOTICE}{title}\n\n{facts}\n{rest.rstrip()}\n"


def _index(rules: Sequence[RuleInfo]) -> str:
    lines = [_NOTICE + "# Rules"]
    family = ""
    for info in rules:
        if info.code[3] != family:
            family = info.code[3]
            lines += ["", f"## {_FAMILIES.get(family, '')}", "", "| code | name | severity | what it does |"]
            lines += ["|---|---|---|---|"]
        preview = "" if info.status == "stable" else " (preview)"
        summary = info.summary.replace("|", r"\|")
        lines.append(
            f"| [{info.code}]({info.code}.md) | {info.name}{preview} | {info.severity} | {summary} |"
        )
    lines += [
        "",
        "## Merged into others",
        "",
        "Their codes are understood in settings, options and comments.",
        "",
    ]
    for code, (name, targets) in registry.MERGED.items():
        lines.append(f"- {code}, {name}: reported as {' and '.join(targets)}")
    return "\n".join(lines) + "\n"

"""Write ``docs/real-packages.md``: every default finding on real packages beside the label that a reader gave it.

    python -m tests.benchmarks.real_packages FOLDER... --dump findings.json
    python -m tests.benchmarks.labels.table findings.json --packages FOLDER... > docs/real-packages.md

``labels.json`` holds what readers said, by package, file, line and code. A finding without a label is listed as
*unread*, and a label without a finding is left out, so the page tells the truth after the linter changed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks import measure

LABELS = Path(__file__).with_name("labels.json")
VERDICTS = ("true", "arguable", "false", "unread")
HEAD = Path(__file__).with_name("head.md")
TAIL = Path(__file__).with_name("tail.md")


class Package(NamedTuple):
    """One package as unpacked: how much there is to read."""

    name: str
    version: str
    lines: int


class Labelled(NamedTuple):
    """A finding with its label."""

    package: str
    filename: str
    row: int
    code: str
    certainty: str
    verdict: str
    reason: str


def main(argv: Sequence[str] | None = None) -> int:
    """Print the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("findings", type=Path, help="what real_packages --dump wrote")
    parser.add_argument("--packages", nargs="+", type=Path, required=True, help="the folders that it read")
    args = parser.parse_args(argv)
    labels = json.loads(LABELS.read_text(encoding="utf-8"))
    rows = labelled(json.loads(args.findings.read_text(encoding="utf-8")), labels)
    print(HEAD.read_text(encoding="utf-8"))
    print(page([package(folder) for folder in args.packages], rows))
    print(f"\n{TAIL.read_text(encoding='utf-8')}", end="")
    return 1 if any(row.verdict == "unread" for row in rows) else 0


def package(folder: Path) -> Package:
    """Name, version as the folder's metadata says, and lines of Python."""
    infos = sorted(folder.glob("*.dist-info"))
    version = infos[0].name.removesuffix(".dist-info").rpartition("-")[2] if infos else ""
    if not version:
        told = sorted(folder.glob("PKG-INFO")) + sorted(folder.glob("*/PKG-INFO"))
        text = told[0].read_text(encoding="utf-8") if told else ""
        version = next((x[9:] for x in text.splitlines() if x.startswith("Version: ")), "?")
    lines = sum(path.read_bytes().count(b"\n") for path in measure.python_files(folder))
    return Package(folder.name, version, lines)


def labelled(findings: Iterable[Mapping[str, Any]], labels: Iterable[Mapping[str, Any]]) -> list[Labelled]:
    """The default findings, but for what could not be read, each with its label."""
    known = {(x["package"], x["filename"], x["row"], x["code"]): x for x in labels}
    rows = []
    for found in findings:
        if found["reported"] != "default" or found["code"].startswith("SPG9"):
            continue
        key = (found["package"], found["filename"], found["location"]["row"], found["code"])
        label = known.get(key, {"label": "unread", "reason": ""})
        rows.append(Labelled(*key, found["certainty"], label["label"], label["reason"]))
    return sorted(rows)


def page(packages: Sequence[Package], rows: Sequence[Labelled]) -> str:
    """Totals, then one table for each package."""
    body = [
        [name(p), f"{p.lines:,}", *figures(p.lines, [r for r in rows if r.package == p.name])]
        for p in packages
    ]
    lines = sum(p.lines for p in packages)
    body.append(["**all**", f"{lines:,}", *figures(lines, rows)])
    header = ["package", "lines", "findings", "per 10,000 lines", *VERDICTS, "false share"]
    parts = ["## Totals\n", table(header, body)]
    for each in packages:
        own = [row for row in rows if row.package == each.name]
        parts.append(f"\n## {name(each)}\n")
        cells = [[f"`{r.filename}:{r.row}`", r.code, r.certainty, r.verdict, r.reason] for r in own]
        parts.append(table(["place", "code", "certainty", "label", "why"], cells) if own else "No findings.")
    by_code = Counter((row.code, row.verdict) for row in rows)
    codes = [
        [code, *(str(by_code[code, verdict]) for verdict in VERDICTS)]
        for code in sorted({r.code for r in rows})
    ]
    return "\n".join([*parts, "\n## By rule\n", table(["code", *VERDICTS], codes)])


def name(each: Package) -> str:
    return f"{each.name} {each.version}"


def figures(lines: int, rows: Sequence[Labelled]) -> list[str]:
    """Findings, how many in 10,000 lines, of each verdict, and the share of false ones."""
    counts = Counter(row.verdict for row in rows)
    share = f"{100 * counts['false'] / len(rows):.0f} %" if rows else "-"
    rate = f"{len(rows) / max(lines, 1) * 10_000:.2f}"
    return [str(len(rows)), rate, *(str(counts[verdict]) for verdict in VERDICTS), share]


def table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.exit(main())

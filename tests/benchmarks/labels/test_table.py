"""The page of labels says what is labelled, what is not, and nothing else."""

from __future__ import annotations

import json
from typing import Any

from tests.benchmarks.labels.table import LABELS, Package, labelled, page


def found(filename: str, row: int, code: str = "SPG101", reported: str = "default") -> dict[str, Any]:
    """A finding as ``real_packages --dump`` writes it."""
    return {
        "package": "pkg",
        "reported": reported,
        "filename": filename,
        "location": {"row": row, "column": 1},
        "code": code,
        "certainty": "likely",
    }


def test_findings_get_their_labels() -> None:
    """A finding without a label is unread; preview and meta findings do not count; stale labels are left out."""
    said = [
        {"package": "pkg", "filename": "a.py", "row": 1, "code": "SPG101", "label": "false", "reason": "r"},
        {"package": "pkg", "filename": "gone.py", "row": 1, "code": "SPG101", "label": "true", "reason": "r"},
    ]
    findings = [
        found("a.py", 1),
        found("a.py", 2),
        found("a.py", 3, "SPG904"),
        found("a.py", 4, reported="preview"),
    ]
    rows = labelled(findings, said)
    assert [(r.filename, r.row, r.verdict) for r in rows] == [("a.py", 1, "false"), ("a.py", 2, "unread")]


def test_totals_are_counted() -> None:
    """Findings per 10,000 lines and the share of false ones are those of the rows."""
    rows = labelled(
        [found("a.py", 1), found("a.py", 2)],
        [{"package": "pkg", "filename": "a.py", "row": 1, "code": "SPG101", "label": "false", "reason": "r"}],
    )
    text = page([Package("pkg", "1.0", 40_000)], rows)
    assert "| pkg 1.0 | 40,000 | 2 | 0.50 | 0 | 0 | 1 | 1 | 50 % |" in text


def test_labels_are_well_formed() -> None:
    """Each label has a verdict of the three, a reason, and a key of its own."""
    labels = json.loads(LABELS.read_text(encoding="utf-8"))
    keys = [(x["package"], x["filename"], x["row"], x["code"]) for x in labels]
    assert len(set(keys)) == len(keys)
    assert all(x["label"] in ("true", "arguable", "false") and x["reason"].endswith(".") for x in labels)

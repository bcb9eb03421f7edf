"""Run every bad program of the case collection that stands still, and score what is said about it.

``python -m tests.benchmarks.hang_diagnosis.run`` runs, for each program that hangs bare (``truth.json``), first
``torchrun -m spmdguard run --stall-limit 5``, then plain torchrun with ``TORCH_DISTRIBUTED_DEBUG=DETAIL``, and
prints a table. ``--bare`` finds out anew which programs hang, by running each without anything.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .launching import launch
from .scoring import Diagnosed, classify, read_detail, read_guarded

HERE = Path(__file__).parent
CASES = HERE.parents[1] / "corpus" / "cases"
TRUTH = HERE / "truth.json"
LIMIT_S = 5.0
TIMEOUT_S = 45.0
DETAIL_TIMEOUT_S = 20.0
BARE_TIMEOUT_S = 60.0  # longer than any program here takes to fail by itself on a loaded machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bare", action="store_true", help="run the programs bare and write truth.json")
    parser.add_argument("--kinds", default="hang", help="which kinds of truth.json to run (hang,lost)")
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--no-detail", action="store_true", help="leave TORCH_DISTRIBUTED_DEBUG=DETAIL out")
    parser.add_argument(
        "--results", type=Path, default=Path("hang_diagnosis.json"), help="kept after each case"
    )
    options = parser.parse_args()
    if options.bare:
        find_truth(options.only)
        return
    truth = json.loads(TRUTH.read_text())
    results: dict[str, Any] = json.loads(options.results.read_text()) if options.results.exists() else {}
    for name, known in truth.items():
        if known["bare"] not in options.kinds.split(",") or options.only not in name or name in results:
            continue
        results[name] = run_case(name, known, detail=not options.no_detail)
        options.results.write_text(json.dumps(results, indent=1))
        print(name, results[name], flush=True)
    print_table(truth, results)


def find_truth(only: str) -> None:
    """Run every bad program bare; keep what is known of the ranks."""
    truth = json.loads(TRUTH.read_text()) if TRUTH.exists() else {}
    for bad in sorted(CASES.glob("*/*/bad.py")):
        name = str(bad.parent.relative_to(CASES))
        if only not in name:
            continue
        case = json.loads((bad.parent / "case.json").read_text())
        nproc = case.get("nproc") or 2
        ended = launch([str(bad)], nproc=nproc, timeout_s=BARE_TIMEOUT_S)
        before = truth.get(name, {})
        truth[name] = {"bare": classify(ended), "nproc": nproc, "ranks": before.get("ranks", [])}
        print(name, truth[name]["bare"], round(ended.seconds, 1), flush=True)
        TRUTH.write_text(json.dumps(truth, indent=1) + "\n")


def run_case(name: str, known: dict[str, Any], *, detail: bool) -> dict[str, Any]:
    """Both runs of one case."""
    bad, nproc = str(CASES / name / "bad.py"), known["nproc"]
    command = ["-m", "spmdguard", "run", "--stall-limit", str(LIMIT_S), "--report-dir", "reports", bad]
    ended = launch(command, nproc=nproc, timeout_s=TIMEOUT_S)
    found: dict[str, Any] = dict(vars(read_guarded(ended, LIMIT_S)))
    found["code"], found["seconds"] = ended.code, round(ended.seconds, 1)
    if not found["kind"]:
        found["log"] = ended.log[-3000:]
    if detail:
        other = launch(
            [bad],
            nproc=nproc,
            timeout_s=DETAIL_TIMEOUT_S,
            environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
        )
        found["detail_ranks"], found["detail_lines"] = read_detail(other)
    return found


def judge(name: str, known: dict[str, Any], found: dict[str, Any]) -> dict[str, bool]:
    """What the run named.

    ``rank``: a rank that diverges is among the suspects; ``only``: no other is. ``stack``: a right line
    (``bad_lines`` or ``also_acceptable_lines`` of the case) is among the lines where ranks stand, began different
    operations, or raised; ``line``: there, or in the findings of the linter that the report shows.
    """
    case = json.loads((CASES / name / "case.json").read_text())
    right = {*case["bad_lines"], *case.get("also_acceptable_lines", [])}
    ranks = set(known["ranks"])
    return {
        "rank": bool(ranks & set(found["ranks"])),
        "only": set(found["ranks"]) <= ranks and bool(found["ranks"]),
        "stack": bool(right & set(found["stack_lines"])),
        "line": bool(right & {*found["stack_lines"], *found["hint_lines"]}),
        "detail": bool(ranks & set(found.get("detail_ranks", ()))),
        "detail_line": bool(right & set(found.get("detail_lines", ()))),
    }


def print_table(truth: dict[str, Any], results: dict[str, Any]) -> None:
    """One line a case, then the shares."""
    names = [name for name in results if name in truth]
    judged = {name: judge(name, truth[name], results[name]) for name in names}
    print(f"\n| {'case':<46} | kind      | rank | only | stack | line | late s ", end="")
    print("| DETAIL rank | DETAIL line |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names:
        found, marks = results[name], judged[name]
        shown = {key: "yes" if value else "-" for key, value in marks.items()}
        late = "" if found["late_s"] is None else f"{found['late_s']:.1f}"
        print(
            f"| {name:<46} | {found['kind']:<9} | {shown['rank']:<4} | {shown['only']:<4} "
            f"| {shown['stack']:<5} | {shown['line']:<4} | {late:>6} "
            f"| {shown['detail']:<11} | {shown['detail_line']:<11} |"
        )
    for title, test in (
        ("rank and line", lambda marks: marks["rank"] and marks["line"]),
        ("only the diverging rank", lambda marks: marks["only"]),
        ("rank and line without the linter", lambda marks: marks["rank"] and marks["stack"]),
        ("DETAIL: rank", lambda marks: marks["detail"]),
        ("DETAIL: line", lambda marks: marks["detail_line"]),
    ):
        num = sum(test(marks) for marks in judged.values())
        print(f"{title}: {num} of {len(names)}")
    late = [found["late_s"] for found in results.values() if found["late_s"] is not None]
    if late:
        print(f"seconds after the limit: median {sorted(late)[len(late) // 2]:.1f}, largest {max(late):.1f}")


if __name__ == "__main__":
    main()


__all__ = ["Diagnosed", "judge", "main", "run_case"]

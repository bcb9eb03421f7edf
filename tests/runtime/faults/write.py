"""Run the whole matrix and write docs/fault-matrix.md: ``python -m tests.runtime.faults.write``.

About ten minutes on two free cores. ``--kind``, ``--place`` and ``--who`` run a part, and then nothing is written.
``--results FILE`` keeps what was seen, a line a cell, and runs only what is missing there; several processes may
share it, each with its ``--part 1/3``. The page is written where no cell is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from ..processes import Zygote
from .cells import CELLS, KINDS, PLACES, WHO, Cell
from .running import BOUND_S, Seen, run_cell

PAGE = Path(__file__).resolve().parents[3] / "docs" / "fault-matrix.md"
HEAD = """# Fault matrix

One training (three gloo ranks, a tracker, a checkpoint each step, post-processing) in which one fault strikes at one
place. Written by `python -m tests.runtime.faults.write`; what each cell must be is in
`tests/runtime/faults/cells.py`. A cell shows how ranks 0, 1 and 2 ended and after how many seconds; one that differs
from what it must be is marked **✗**. Every cell also checks that no rank had to be killed and no process was left,
that the root cause came first on stderr, what the tracker was told, and that the newest checkpoint is complete and
loads.

{summary}

| code | |
|---|---|
| 0 | ended well: nothing failed, or only others failed, and agreed to stop |
| 1 | the error of this rank, of others (main rank), or the lost partner |
| 3, 130 | `sys.exit(3)`, an interrupt |
| 72, 73 | `fail_fast`: an error in a thread; out of memory |
| -9 | killed by the fault |

- *prepare*, *publish* and *post_train* run on the main rank only, and only it has a tracker: the other cells do not
  exist. *close* is the last exchange of a save.
- *destroy* and *post_train* come after the last meeting of the ranks: nobody can learn of a failure there any more, so
  the other ranks end with 0.
- *read-only directory*: a file stands in the place of the directory, which refuses root too. *full disk*: `ENOSPC`
  raised at the place; a real full file system is in `tests/runtime/checkpoint/test_saving.py`.
- *sigterm* is a source of stops (`stop_on_signal`), so all ranks end well. *sigstop* lasts 5 s.
- What it found: a main rank that failed in *save* renamed the folder into which others still wrote, and their error
  about it came first. The folder now stays (`checkpoint/test_simulated.py` holds that).
- *out of memory* ends with 73 where all ranks share the work (`fail_fast`), and is deferred in rank-local work.
"""


def describe(seen: Seen | None) -> str:
    if seen is None:
        return ""
    mark = " **✗**" if seen.problems else ""
    return f"{' '.join(str(code) for code in seen.codes)} ({seen.seconds:.1f}){mark}"


def render(all_seen: list[Seen]) -> str:
    found = {(each.cell.who, each.cell.kind, each.cell.place): each for each in all_seen}
    bad = [each for each in all_seen if each.problems]
    slowest = max(all_seen, key=lambda each: each.seconds)
    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}, Python {platform.python_version()}"
    summary = (
        f"{len(all_seen) - len(bad)} of {len(all_seen)} cells as they must be; slowest: "
        f"{slowest.cell.name.replace('_', ' ')}, {slowest.seconds:.1f} s ({machine}). The bound of a cell is "
        f"{BOUND_S:g} s on a machine that has nothing else to do, and grows with the load."
    )
    lines = [HEAD.format(summary=summary)]
    for who, ranks in WHO.items():
        places = [place for place in PLACES if any((who, kind, place) in found for kind in KINDS)]
        lines += [f"## {who} (rank{'s' * (len(ranks) > 1)} {' and '.join(map(str, ranks))})", ""]
        lines += ["| | " + " | ".join(places) + " |", "|---" * (len(places) + 1) + "|"]
        for kind in KINDS:
            cells = [describe(found.get((who, kind, place))) for place in places]
            if any(cells):
                lines.append(f"| {kind} | " + " | ".join(cells) + " |")
        lines.append("")
    if bad:
        lines += ["## Cells that differ", ""]
        lines += [f"- {each.cell.name.replace('_', ' ')}: {'; '.join(each.problems)}" for each in bad]
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--place", choices=PLACES)
    parser.add_argument("--who", choices=WHO)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--verbose", action="store_true", help="show everything of cells that differ")
    given = parser.parse_args()
    wanted = [
        cell
        for cell in CELLS
        if given.kind in (None, cell.kind)
        and given.place in (None, cell.place)
        and given.who in (None, cell.who)
    ]
    known = read_results(given.results)
    part, _, num_parts = given.part.partition("/")
    missing = [cell for cell in wanted if cell not in known][int(part) - 1 :: int(num_parts)]
    all_seen = run_all(missing, given.results, given.verbose)
    known = {**read_results(given.results), **{each.cell: each for each in all_seen}}
    if all(cell in known for cell in CELLS):
        PAGE.write_text(render([known[cell] for cell in CELLS]), encoding="utf-8")
    return int(any(known[cell].problems for cell in wanted if cell in known))


def read_results(path: Path | None) -> dict[Cell, Seen]:
    """What earlier processes saw, by cell; the last time counts."""
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {
        Cell(*line["cell"]): Seen(Cell(*line["cell"]), line["codes"], line["seconds"], line["problems"], "")
        for line in lines
    }


def run_all(cells: list[Cell], results: Path | None, verbose: bool) -> list[Seen]:
    """Run the cells one after the other."""
    zygote = Zygote()
    all_seen = []
    for number, cell in enumerate(cells, 1):
        seen = run_cell(zygote, cell)
        if seen.problems and seen.seconds > BOUND_S:
            seen = run_cell(zygote, cell)  # a machine that others use: once more
        all_seen.append(seen)
        if results is not None:
            said = {"cell": cell, "codes": seen.codes, "seconds": seen.seconds, "problems": seen.problems}
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(said) + "\n")
        state = "; ".join(seen.problems) or "ok"
        print(f"{number}/{len(cells)} {cell.name} {seen.codes} {seen.seconds:.1f} s: {state}", flush=True)
        if seen.problems and verbose:
            print(seen.report)
    zygote.close()
    return all_seen


if __name__ == "__main__":
    sys.exit(main())

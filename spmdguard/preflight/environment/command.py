"""``spmdguard env``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from spmdguard.preflight.environment.advice import find_advice
from spmdguard.preflight.environment.facts import compare_facts, find_facts, read_facts
from spmdguard.preflight.environment.report import render_report

__all__ = ["env_command"]


def env_command(argv: Sequence[str]) -> int:
    """Report and advise; with ``--check`` 1 where there is a problem or a grave difference; 2 is a wrong use."""
    options = _parse(argv)
    try:
        baseline = None if options.against is None else read_facts(options.against)
        facts = find_facts()
        differences = None if baseline is None else compare_facts(baseline, facts)
    except OSError as error:
        print(f"spmdguard env: error: cannot read {options.against}: {error.strerror}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"spmdguard env: error: {error}", file=sys.stderr)
        return 2
    lines = None if differences is None else [line for _, line in differences]
    advice = find_advice(facts)
    if options.save is not None:
        try:
            options.save.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            print(f"spmdguard env: error: cannot save to {options.save}: {error.strerror}", file=sys.stderr)
            return 2
    if options.json:
        found = {
            "advice": [asdict(each) for each in advice],
            "differences": lines or [],
        }
        print(json.dumps({**facts, **found}, indent=1))
    else:
        print(render_report(facts, advice, lines), end="")
        if options.save is not None:
            print(f"saved to {options.save}; on another host: spmdguard env --against {options.save}")
    grave = any(each.level == "problem" for each in advice) or any(grave for grave, _ in differences or [])
    return int(options.check and grave)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="spmdguard env", description="Report what distributed training depends on here, and advise."
    )
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit with 1 where there is a problem, or versions or GPUs differ from the baseline",
    )
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write what was found to a file: a baseline"
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="show what differs from a baseline that was saved on another host, or earlier",
    )
    return parser.parse_args(list(argv))

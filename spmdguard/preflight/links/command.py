"""``spmdguard preflight``, started on every rank."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from spmdguard.errors import LaunchFailed
from spmdguard.group.exit import end_now
from spmdguard.launch import init_process_group
from spmdguard.preflight.links.judging import judge
from spmdguard.preflight.links.report import render_preflight, to_data
from spmdguard.preflight.links.running import LayerFailed, Options, run_layers

__all__ = ["preflight_command"]


def preflight_command(argv: Sequence[str]) -> int:
    """Measure, and let rank 0 print the verdict; 1 on every rank where something failed.

    The process ends here: a group that waits for a broken rank cannot be taken down in order.
    """
    options = _parse(argv)
    try:
        launched = init_process_group(
            options.backend,
            timeout=options.timeout,
            first_step_timeout=options.timeout,
            handshake_timeout=options.timeout,
        )
    except LaunchFailed as error:
        print(f"spmdguard preflight: {error}", file=sys.stderr, flush=True)
        end_now(1)
    is_main = (launched.identity.rank or 0) == 0

    def tell(layer: str) -> None:
        if is_main and not options.json:
            print(f"spmdguard: preflight: {layer.removesuffix('_s')}", file=sys.stderr, flush=True)

    asked = Options(options.message_mib, options.memory_mib, options.folder)
    try:
        results = run_layers(launched, asked, tell)
    except LayerFailed as error:
        print(f"spmdguard preflight: {launched.identity.describe()}: {error}", file=sys.stderr, flush=True)
        end_now(1)
    findings = judge(results)
    if is_main:
        data = json.dumps(to_data(results, findings), indent=1)
        if options.output is not None:
            options.output.write_text(data + "\n", encoding="utf-8")
        print(data if options.json else render_preflight(results, findings), end="\n" if options.json else "")
    end_now(int(any(finding.level == "failed" for finding in findings)))


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="spmdguard preflight",
        description="Find the slow or failing rank, host or link before the run: torchrun ... -m spmdguard preflight",
    )
    parser.add_argument("--backend", help="as in init_process_group; torch chooses without it")
    parser.add_argument("--message-mib", type=float, default=8.0, help="largest message, in MiB (default: 8)")
    parser.add_argument(
        "--memory-mib", type=int, default=64, help="memory to probe without a GPU (default: 64)"
    )
    parser.add_argument(
        "--folder", type=Path, help="a folder that all hosts share, to see when files become visible"
    )
    parser.add_argument(
        "--timeout", type=float, default=60.0, help="seconds that a layer may wait (default: 60)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON in place of the report")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write JSON to a file too")
    return parser.parse_args(list(argv))

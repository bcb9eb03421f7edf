"""Measure this job, and let rank 0 print the verdict."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import NoReturn

from spmdguard.errors import LaunchFailed
from spmdguard.format import escape_text, format_exception_line
from spmdguard.group.exit import end_now
from spmdguard.launch import init_process_group
from spmdguard.preflight.links.judging import judge
from spmdguard.preflight.links.report import render_preflight, to_data
from spmdguard.preflight.links.running import LayerFailed, Options, run_layers


def measure(options: argparse.Namespace) -> NoReturn:
    """The whole command on this rank.

    The process ends here: a group that waits for a broken rank cannot be taken down in order.
    """
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
    except Exception as error:  # of the backend: not there, or not able to start
        line = escape_text(format_exception_line(error), 300)
        print(f"spmdguard preflight: cannot start the process group: {line}", file=sys.stderr, flush=True)
        end_now(1)
    is_main = (launched.identity.rank or 0) == 0

    def tell(layer: str) -> None:
        if is_main and not options.json:
            print(f"spmdguard: preflight: {layer.removesuffix('_s')}", file=sys.stderr, flush=True)

    asked = Options(options.message_mib, max(1, int(options.memory_mib)), options.folder)
    try:
        results = run_layers(launched, asked, tell)
    except LayerFailed as error:
        who = (
            launched.identity.describe() if launched.world_size > 1 else launched.identity.describe_process()
        )
        print(f"spmdguard preflight: {who}: {error}", file=sys.stderr, flush=True)
        end_now(1)
    findings = judge(results)
    written = True
    if is_main:
        data = json.dumps(to_data(results, findings), indent=1)
        print(data if options.json else render_preflight(results, findings), end="\n" if options.json else "")
        written = options.output is None or _write(options.output, data)
    end_now(int(not written or any(finding.level == "failed" for finding in findings)))


def _write(path: Path, data: str) -> bool:
    try:
        path.write_text(f"{data}\n", encoding="utf-8")
    except OSError as error:
        print(f"spmdguard preflight: cannot write {path}: {error.strerror}", file=sys.stderr)
        return False
    return True

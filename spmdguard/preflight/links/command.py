"""``spmdguard preflight``, started on every rank."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from spmdguard.arguments import positive_number
from spmdguard.group.torch_access import lacks_torch

__all__ = ["preflight_command"]

_positive = partial(positive_number, needed="a number above 0")


def preflight_command(argv: Sequence[str]) -> int:
    """Measure, and let rank 0 print the verdict; 1 on every rank where something failed, 2 without torch."""
    options = _parse(argv)
    if lacks_torch("preflight"):
        return 2
    from spmdguard.preflight.links.measuring import measure

    measure(options)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="spmdguard preflight",
        description="Find the slow or failing rank, host or link before the run: torchrun ... -m spmdguard preflight",
    )
    parser.add_argument("--backend", help="as in init_process_group; torch chooses without it")
    parser.add_argument(
        "--message-mib", type=_positive, default=8.0, help="largest message, in MiB (default: 8)"
    )
    parser.add_argument(
        "--memory-mib", type=_positive, default=64, help="memory to probe without a GPU (default: 64)"
    )
    parser.add_argument(
        "--folder", type=Path, help="a folder that all hosts share, to see when files become visible"
    )
    parser.add_argument(
        "--timeout", type=_positive, default=60.0, help="seconds that a layer may wait (default: 60)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON in place of the report")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write JSON to a file too")
    return parser.parse_args(list(argv))

"""Which except clause a raise finds: by class, ancestors included, also for a project's own exceptions."""

from __future__ import annotations

import pytest
from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint

SCRIPT = """
import torch.distributed as dist

class StepError(RuntimeError): ...
class LateError(StepError): ...
class Quit(SystemExit): ...

def main():
    try:
        if dist.get_rank() == 0:
            raise {raised}
    except {caught}:
        pass
    dist.barrier()
"""


@pytest.mark.parametrize(
    ("raised", "caught", "expected"),
    [
        ("StepError", "StepError", []),
        ("LateError('late')", "RuntimeError", []),
        ("LateError('late')", "(KeyError, StepError)", []),
        ("LateError('late')", "Exception", []),
        ("StepError", "LateError", ["SPG205"]),
        ("StepError", "OSError", ["SPG205"]),
        ("Quit", "Exception", ["SPG205"]),
        ("Quit", "BaseException", []),
    ],
)
def test_ancestors_catch(raised: str, caught: str, expected: list[str]) -> None:
    """A clause catches its class and what derives from it; ``Exception`` catches no exit."""
    source = SCRIPT.format(raised=raised, caught=caught)
    found = lint([], Config(), stdin=StandardInput(source.encode())).findings
    assert expected == [finding.code for finding in found]

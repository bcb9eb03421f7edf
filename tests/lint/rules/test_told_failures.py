"""Kept errors of which all ranks are told, and raise: nobody waits for the rank that raises its own."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

PROGRAM = """
    import torch
    import torch.distributed as dist

    def together(work, path):
        error = None
        try:
            result = work(path)
        except Exception as exc:
            error = exc
        EXCHANGE
        RAISE
        return result

    def read(path):
        return torch.load(path)

    def main(path):
        dist.init_process_group("gloo")
        try:
            shard = together(read, f"{path}-{dist.get_rank()}")
            dist.all_reduce(shard)
        finally:
            dist.destroy_process_group()

    main("x")
"""
FLAG = "failed = torch.tensor([int(error is not None)]); dist.all_reduce(failed)"
LIST = (
    "errors = [None] * dist.get_world_size(); dist.all_gather_object(errors, repr(error) if error else None)"
)


def program(exchange: str, *raises: str) -> str:
    """A program that exchanges whether a rank has failed, and raises."""
    return PROGRAM.replace("EXCHANGE", exchange).replace("RAISE", "\n        ".join(raises))


@pytest.mark.parametrize(
    ("exchange", "raises"),
    [
        (FLAG, ("if error is not None:", "    raise error", "if failed.item():", "    raise RuntimeError()")),
        (FLAG, ("if error:", "    raise error", "elif failed.item():", "    raise RuntimeError()")),
        (FLAG, ("if failed.item():", "    if error:", "        raise error", "    raise RuntimeError()")),
        (LIST, ("if error is not None:", "    raise error", "if any(errors):", "    raise RuntimeError()")),
    ],
)
def test_told_and_raised_by_all(exchange: str, raises: tuple[str, ...]) -> None:
    """The ranks without an error raise as well, in a helper that knows nothing of the work."""
    assert agree(program(exchange, *raises), "SPG601", "SPG205", "SPG206", "SPG202")


@pytest.mark.parametrize(
    ("exchange", "raises"),
    [
        ("pass", ("if error is not None:", "    raise error  # SPG601")),
        (FLAG, ("if error is not None:", "    raise error  # SPG601")),
        (FLAG, ("if error:", "    raise error  # SPG601", "if path is None:", "    raise RuntimeError()")),
        (
            "other = torch.ones(1); dist.all_reduce(other)",
            ("if error:", "    raise error  # SPG601", "if other.item() > 8:", "    raise RuntimeError()"),
        ),
    ],
)
def test_not_told(exchange: str, raises: tuple[str, ...]) -> None:
    """Nothing is exchanged, nobody asks for it, or what is asked for says nothing of the error."""
    assert agree(program(exchange, *raises), "SPG601")

"""SPG701: groups made without a timeout."""

from __future__ import annotations

from tests.lint.rules.marked import agree, severities


def test_without() -> None:
    """An init call that leaves the timeout to the default is an info."""
    source = """
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
"""
    assert severities(source, "SPG701") == ["info"]


def test_with_timeout() -> None:
    """A timeout by keyword is silent."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def main(timeout):
            dist.init_process_group("gloo", timeout=timeout)
        """,
        "SPG701",
    )


def test_miss_keywords_by_dictionary() -> None:
    """Known false alarm: keywords that come out of a dictionary are not seen."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def main(options):
            dist.init_process_group(**options)  # SPG701
        """,
        "SPG701",
    )

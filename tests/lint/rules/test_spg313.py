"""SPG313: steps on gradients that were not exchanged."""

from __future__ import annotations

import textwrap

from tests.lint.rules.marked import agree

HEAD = """
import contextlib
from contextlib import nullcontext

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, window, parallel):
    model = DDP(net)
    optimizer = torch.optim.AdamW(model.parameters())
"""


def agrees(body: str) -> bool:
    """Whether a training loop is reported as its comments announce."""
    return agree(HEAD + textwrap.indent(textwrap.dedent(body), "    "), "SPG313")


def test_first_instead_of_last() -> None:
    """The exchange at the beginning of a window: a choice of contexts, a variable, a counter, an inner loop."""
    for body in (
        """
        for i, batch in enumerate(loader):
            with model.no_sync() if i % window != 0 else nullcontext():
                model(batch).mean().backward()
            if (i + 1) % window == 0:  # SPG313
                optimizer.step()
                optimizer.zero_grad()
        """,
        """
        for i, batch in enumerate(loader):
            context = nullcontext
            if window > 1 and i % window != 0:
                context = model.no_sync
            with context():
                model(batch).mean().backward()
            if (i + 1) % window == 0:  # SPG313
                optimizer.step()
        """,
        """
        seen = 0
        for batch in loader:
            if seen % window:
                with model.no_sync():
                    model(batch).mean().backward()
            else:
                model(batch).mean().backward()
            seen += 1
            if seen % window == 0:  # SPG313
                optimizer.step()
        """,
        """
        for step in range(100):
            for part in range(window):
                with nullcontext() if part == 0 else model.no_sync():
                    model(loader[part]).mean().backward()
            optimizer.step()  # SPG313
        """,
        """
        for i, batch in enumerate(loader):
            quiet = parallel and i % 4 != 0
            with contextlib.ExitStack() as stack:
                if quiet:
                    stack.enter_context(model.no_sync())
                model(batch).mean().backward()
            if i % 4 == 3:
                optimizer.step()
        """,
    ):
        assert agrees(body)


def test_what_is_left_at_the_end() -> None:
    """The last step applies an unfinished window, whose backward pass ran alone."""
    assert agrees(
        """
        for i, batch in enumerate(loader):
            if (i + 1) % window == 0:
                model(batch).mean().backward()
            else:
                with model.no_sync():
                    model(batch).mean().backward()
            if (i + 1) % window == 0 or i + 1 == len(loader):  # SPG313
                optimizer.step()
        """
    )
    assert agrees(
        """
        for i, batch in enumerate(loader, start=1):
            with nullcontext() if i % window == 0 else model.no_sync():
                model(batch).mean().backward()
            if i % window == 0 or i == len(loader):  # SPG313
                optimizer.step()
        """
    )


def test_right_windows() -> None:
    """One condition for both, however it is written."""
    for body in (
        """
        for i, batch in enumerate(loader):
            last = i % window == window - 1
            with nullcontext() if last else model.no_sync():
                model(batch).mean().backward()
            if not last:
                continue
            optimizer.step()
        """,
        """
        for i, batch in enumerate(loader, 1):
            if i % window:
                with model.no_sync():
                    model(batch).mean().backward()
            else:
                model(batch).mean().backward()
                optimizer.step()
        """,
        """
        for i, batch in enumerate(loader):
            last = (i + 1) % window == 0 or i + 1 == len(loader)
            with nullcontext() if last or not parallel else model.no_sync():
                model(batch).mean().backward()
            if last:
                optimizer.step()
        """,
        """
        for step in range(100):
            for part in range(window):
                with nullcontext() if part == window - 1 else model.no_sync():
                    model(loader[part]).mean().backward()
            optimizer.step()
        """,
        """
        for i, batch in enumerate(loader):
            if parallel and (i + 1) % window != 0:
                with model.no_sync():
                    model(batch).mean().backward()
            else:
                model(batch).mean().backward()
            if (i + 1) % window == 0:
                optimizer.step()
        """,
    ):
        assert agrees(body)


def test_other_plans() -> None:
    """Local steps that are averaged later, gradients exchanged by hand, and two optimizers are no findings."""
    for body in (
        """
        for i, batch in enumerate(loader):
            with model.no_sync():
                model(batch).mean().backward()
            optimizer.step()
        """,
        """
        for i, batch in enumerate(loader):
            with model.no_sync() if i % window else nullcontext():
                model(batch).mean().backward()
            if (i + 1) % window == 0:
                for p in model.parameters():
                    torch.distributed.all_reduce(p.grad)
                optimizer.step()
        """,
        """
        judge = DDP(net)
        judging = torch.optim.SGD(judge.parameters(), lr=0.1)
        for i, batch in enumerate(loader):
            judge(batch).mean().backward()
            judging.step()
            with judge.no_sync():
                judge(model(batch)).mean().backward()
            optimizer.step()
        """,
    ):
        assert agrees(body)


def test_known_limits() -> None:
    """Conditions on other values are left alone."""
    assert agrees(
        """
        for i, batch in enumerate(loader):
            with nullcontext() if batch.final else model.no_sync():
                model(batch).mean().backward()
            if (i + 1) % window == 0:
                optimizer.step()
        """
    )

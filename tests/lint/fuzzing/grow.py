"""Sources grown from a grammar: all statements and expressions, full of ranks and collectives.

Nothing here means anything; names come from a short list so that they collide: a name may be a module, a
function, a class, a model and a rank at once.
"""

from __future__ import annotations

import random

NAMES = [
    "x",
    "rank",
    "model",
    "self",
    "f",
    "g",
    "A",
    "dist",
    "torch",
    "acc",
    "loss",
    "loader",
    "stop",
    "cfg",
    "os",
]
HEADS = [
    "import torch",
    "import torch.distributed as dist",
    "from torch.distributed import *",
    "from torch.distributed import all_reduce as f, get_rank as g, barrier",
    "from accelerate import Accelerator as A",
    "from torch.nn.parallel import DistributedDataParallel as A",
    "from . import x, y as g",
    "from .mod1 import *",
    "import mod1, mod2.sub",
    "from mod2 import f, A",
    "import os, time, random",
    "from spmdguard import rank_local, collective, sync_should_stop",
    "from contextlib import suppress, contextmanager",
]
CALLS = [
    "dist.all_reduce({0})",
    "dist.barrier()",
    "dist.get_rank()",
    "dist.get_rank({0})",
    "dist.broadcast({0}, src={1})",
    "dist.all_gather_object({0}, {1})",
    "dist.new_group({0})",
    "dist.init_process_group()",
    "dist.destroy_process_group()",
    "torch.distributed.is_initialized()",
    "acc.wait_for_everyone()",
    "acc.gather({0})",
    "acc.is_main_process",
    "A({0})",
    "loss.backward()",
    "sync_should_stop({0})",
    "os.environ['RANK']",
    "os.path.exists({0})",
    "time.time()",
    "f({0}, *{1}, k={0})",
    "g(**{0})",
    "{0}.{1}({0})",
    "getattr({0}, 'rank', {1})",
    "setattr({0}, {1}, {0})",
    "functools.partial(f, {0})({1})",
    "super().f({0})",
    "type({0})({1})",
    "eval({0})",
]
EXPRESSIONS = [
    "{name}",
    "{name}.{name}",
    "{0}[{1}]",
    "{0}[{1}:{0}]",
    "({0} if {1} else {0})",
    "({0} and {1} or not {0})",
    "({0} + {1})",
    "(-{0})",
    "({0} < {1} <= {0})",
    "({0} == {1})",
    "({0} is not None)",
    "({0} in {1})",
    "(lambda {name}, *a, k={0}: {1})",
    "[{0} for {name} in {1} if {0}]",
    "{{{0}: {1} for {name} in {0}}}",
    "({0} for {name} in {1})",
    "[{0}, *{1}]",
    "{{{0}: {1}, **{0}}}",
    "{{{0}, {1}}}",
    "({0}, {1})",
    "({name} := {0})",
    "f'{{{name}!r:>{{{name}}}}} {{{name}}}'",
    "'text'",
    "0",
    "1",
    "True",
    "None",
    "...",
]
SIMPLE = [
    "{target} = {0}",
    "{target} = {target} = {0}",
    "{name}: {0} = {1}",
    "{target} += {0}",
    "{name}, *{name} = {0}",
    "{name}.{name} = {0}",
    "{0}",
    "{0}",
    "return {0}",
    "return",
    "break",
    "continue",
    "raise {0} from {1}",
    "raise",
    "assert {0}, {1}",
    "del {name}",
    "global {name}",
    "import {name}",
    "yield {0}",
    "yield from {0}",
    "await {0}",
    "{name} = yield",
    "pass",
    "{0}  # spmdguard: ignore[SPG101] -- why",
    "{0}  # noqa: SPG",
    "{name} = {0}  # spmdguard: uniform",
]
COMPOUND: list[tuple[str, ...]] = [
    ("if {0}:",),
    ("if {0}:", "else:"),
    ("if {0}:", "elif {1}:", "else:"),
    ("if dist.get_rank() == 0:", "else:"),
    ("if not {0}:",),
    ("while {0}:",),
    ("while True:", "else:"),
    ("for {target} in {0}:",),
    ("for {name} in range({0}):", "else:"),
    ("async for {name} in {0}:",),
    ("with {0} as {target}:",),
    ("with suppress({0}), {1}:",),
    ("async with {0}:",),
    ("try:", "except {0} as {name}:"),
    ("try:", "except ({0}, {1}):", "else:", "finally:"),
    ("try:", "finally:"),
    ("try:", "except:"),
    ("def f({name}, /, b={0}, *c, d: {1}, **e):",),
    ("async def g({name}):",),
    ("@{0}\ndef {name}(self):",),
    ("@contextmanager\ndef {name}({name}=None):",),
    ("@rank_local\ndef {name}():",),
    ("class A({0}, metaclass={1}):",),
    ("class {name}:",),
]
MATCH_PATTERNS = [
    "{name}",
    "[1, *{name}]",
    "{{'a': {name}, **rest}}",
    "A({name}=1)",
    "None | 'x'",
    "(A() as {name})",
]
TARGETS = ["x", "rank", "self.model", "self.rank", "x[0]", "(x, self.y)", "[x, *rank]"]


class Grower:
    """Grows one source; ``size`` bounds the number of statements."""

    def __init__(self, chooser: random.Random, size: int) -> None:
        self._chooser = chooser
        self._left = size

    def source(self) -> str:
        """A whole module."""
        heads = self._chooser.sample(HEADS, self._chooser.randint(1, 6))
        return "\n".join([*heads, *self._block(0, self._chooser.randint(1, 12))]) + "\n"

    def _block(self, indent: int, count: int) -> list[str]:
        lines: list[str] = []
        for _ in range(count):
            if self._left <= 0:
                break
            self._left -= 1
            lines.extend(self._statement(indent))
        return lines or [" " * indent + "pass"]

    def _statement(self, indent: int) -> list[str]:
        pad = " " * indent
        roll = self._chooser.random()
        if roll < 0.55 or indent > 40:
            return [pad + self._fill(self._chooser.choice(SIMPLE))]
        if roll < 0.58:
            return self._match(indent)
        lines: list[str] = []
        for head in self._chooser.choice(COMPOUND):
            lines.extend(pad + part for part in self._fill(head).split("\n"))
            lines.extend(self._block(indent + 2, self._chooser.randint(1, 4)))
        return lines

    def _match(self, indent: int) -> list[str]:
        lines = [" " * indent + self._fill("match {0}:")]
        for _ in range(self._chooser.randint(1, 3)):
            pattern = self._chooser.choice(MATCH_PATTERNS)
            guard = " if {0}" if self._chooser.random() < 0.5 else ""
            lines.append(" " * (indent + 2) + self._fill(f"case {pattern}{guard}:"))
            lines.extend(self._block(indent + 4, self._chooser.randint(1, 3)))
        return lines

    def _fill(self, form: str) -> str:
        for mark in ("{target}", "{name}"):
            while mark in form:
                form = form.replace(mark, self._chooser.choice(TARGETS if mark == "{target}" else NAMES), 1)
        return form.format(self._expression(3), self._expression(3))

    def _expression(self, depth: int) -> str:
        if depth == 0:
            return self._chooser.choice(NAMES)
        form = self._chooser.choice(CALLS if self._chooser.random() < 0.45 else EXPRESSIONS)
        while "{name}" in form:
            form = form.replace("{name}", self._chooser.choice(NAMES), 1)
        return form.format(self._expression(depth - 1), self._expression(depth - 1))


def grown(chooser: random.Random) -> str:
    """One source grown from the grammar."""
    return Grower(chooser, chooser.choice((5, 15, 40, 80))).source()

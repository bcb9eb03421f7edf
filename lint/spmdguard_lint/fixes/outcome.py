"""What fixing came to, delivered: files written, differences shown, and one line about it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TextIO

from ..source.reading import SourceFile
from .applying import Fixed
from .showing import difference
from .writing import CannotWrite, write_fixed

MAX_LISTED = 5


@dataclass(frozen=True)
class Outcome:
    """``diff``: nothing is written. ``stdin``: the text that came on standard input, as it was."""

    fixed: Fixed
    diff: bool
    stdin: SourceFile | None = None

    def deliver(self, stream: TextIO) -> list[str]:
        """Write the files, or show the differences; the failures in words, after everything else was done."""
        failures: list[str] = []
        if self.stdin is not None and not self.diff:
            _write_bytes(stream, self.fixed.after.get(self.stdin.filename, self.stdin).content)
        written: dict[str, bytes] = {}  # one file may have several names
        for name in sorted(self.fixed.after):
            before, after = self.fixed.before[name], self.fixed.after[name]
            place = os.path.realpath(before.path)
            if self.diff:
                stream.writelines(difference(before, after))
            elif before is not self.stdin and written.get(place) != after.content:
                try:
                    write_fixed(before, after)
                    written[place] = after.content
                except CannotWrite as error:
                    failures.append(str(error))
        return failures

    def summary(self) -> str:
        """How many findings were fixed, or would be, and which ones' fixes were refused."""
        num, files = self.fixed.num_fixed, len(self.fixed.after)
        verb = "Would fix" if self.diff else "Fixed"
        text = f"{verb} {_count(num, 'finding')} in {_count(files, 'file')}" if num else "Nothing to fix"
        refused = self.fixed.refused_before if self.diff else self.fixed.refused
        if refused:
            listed = ", ".join(
                f"{f.code} at {f.site.filename}:{f.site.start.row}" for f in refused[:MAX_LISTED]
            )
            more = ", ..." if len(refused) > MAX_LISTED else ""
            text += (
                f"; {_count(len(refused), 'fix')} left out, which would leave its finding or bring another: "
            )
            text += listed + more
        return text + "."


def _write_bytes(stream: TextIO, content: bytes) -> None:
    """To a stream as bytes where it takes them."""
    raw = getattr(stream, "buffer", None)
    if raw is None:
        stream.write(content.decode())
        return
    stream.flush()
    raw.write(content)
    raw.flush()


def _count(num: int, noun: str) -> str:
    return f"{num:,} {noun}" + ("" if num == 1 else "es" if noun.endswith("x") else "s")

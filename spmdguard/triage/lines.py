"""Log files to lines: every line with its file, its number, and what its prefixes say about who wrote it.

Terminology: a *tag* is what a launcher or a logger puts before a line (``[default1]:``, ``[rank3]:``, ``3: ``,
``(Worker pid=12, ip=10.0.0.2)``, a date). A *stream* is what one process wrote to one file, as far as tags tell.
Cost: linear in the size of the logs; nothing but one line is held.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from spmdguard.triage.tags import NO_TAG, Tag, habits_of, read_tag

MAX_LINE = 20_000  # characters; what lies beyond is cut, with a mark
SAMPLE = 400  # lines looked at to learn a file's habit of prefixes
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})
_LOG_SUFFIXES = frozenset({"", ".log", ".txt", ".out", ".err", ".stdout", ".stderr", ".gz"})
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_ESCAPES = re.compile(
    r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
_RANK_IN_PATH = (
    re.compile(r"(?:^|[/_.-])(?:rank|task|worker|proc)[_-]?(\d+)(?:\.[a-z]{2,6})*$", re.IGNORECASE),
    re.compile(r"(?:^|/)(?:rank|task|worker|proc)[_-]?(\d+)/[^/]*$", re.IGNORECASE),
    re.compile(r"attempt_\d+/(\d+)/std(?:err|out)\.log$"),
    re.compile(r"(?:slurm-\d+|\d{4,})[_-](\d{1,5})\.(?:out|err|log)$"),
)
_HOST_IN_PATH = re.compile(
    r"(?:^|/)(?:host|node)[_=-]?([A-Za-z][\w-]*\d[\w-]*|\d+)(?=[/_.]|$)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its tags; ``number`` counts from 1."""

    file: str
    number: int
    text: str
    tag: Tag


class UnreadableLog(Exception):
    """A log that cannot be read; ``file`` and ``reason`` say which and why."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file, self.reason = file, reason


def find_logs(paths: Iterable[Path]) -> list[Path]:
    """The files named, and those below the folders named, in a fixed order; a missing path is an error."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found.extend(
                sorted(p for p in path.rglob("*") if p.is_file() and _looks_like_log(p.relative_to(path)))
            )
        elif path.exists():
            found.append(path)
        else:
            raise UnreadableLog(str(path), "no such file or folder")
    return list(dict.fromkeys(found))


def _looks_like_log(path: Path) -> bool:
    """Whether a file below a folder is worth reading: a log by its name, or a dump of the flight recorder."""
    if any(part.startswith(".") or part in _SKIPPED for part in path.parts):
        return False
    suffix = path.suffix.lower()
    numbered = suffix[1:].lstrip("oe").isdigit()  # job.3, job.o123
    return suffix in _LOG_SUFFIXES or numbered or "trace_rank" in path.name


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of one log, gzip included; a file that holds no text yields nothing."""
    try:
        with _open(path) as stream:
            yield from lines_of(stream, str(path))
    except (OSError, EOFError) as error:
        raise UnreadableLog(str(path), getattr(error, "strerror", None) or str(error)) from error


def lines_of(stream: BinaryIO, file: str) -> Iterator[Line]:
    """The lines of an open log; ``file`` is its name, which may tell the rank."""
    texts = _texts(stream)
    sample: list[str] = []
    for text in texts:
        sample.append(text)
        if len(sample) == SAMPLE:
            break
    habits = habits_of(sample)
    default = tag_of_path(file)
    number = 0
    for source in (sample, texts):
        for text in source:
            number += 1
            tag, rest = read_tag(text, habits)
            yield Line(file, number, rest, tag.over(default))


def tag_of_path(file: str) -> Tag:
    """What the name of a log tells: torchrun's folders, ``%t`` of SLURM, ``rank3.log``."""
    path = file.replace("\\", "/")
    host = _HOST_IN_PATH.search(path)
    tag = Tag(host=host.group(1) if host else None)
    for pattern in _RANK_IN_PATH:
        found = pattern.findall(path)
        if found:
            local = "attempt_" in path
            number = int(found[-1])
            return Tag(local_rank=number, host=tag.host) if local else Tag(rank=number, host=tag.host)
    return tag if tag.host else NO_TAG


def clean(text: str) -> str:
    """The text without terminal escapes and control characters; of an overwritten progress bar, what was left."""
    text = text.rstrip("\r\n")
    if "\r" in text:
        text = text.rsplit("\r", 1)[1]
    text = _ESCAPES.sub("", text)
    return text if len(text) <= MAX_LINE else text[:MAX_LINE] + " [cut]"


def _texts(stream: BinaryIO) -> Iterator[str]:
    while raw := stream.readline(4 * MAX_LINE):
        yield clean(raw.decode("utf-8", "replace"))


def _open(path: Path) -> BinaryIO:
    file: BinaryIO = path.open("rb")
    start = file.read(2048)
    file.seek(0)
    if start[:2] == b"\x1f\x8b":
        return io.BufferedReader(gzip.GzipFile(fileobj=file))
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = file.read().decode("utf-16", "replace")
        file.close()
        return io.BytesIO(text.encode("utf-8"))
    if len(_BINARY.findall(start)) > len(start) // 10:
        file.close()
        return io.BytesIO()
    return file

"""Decides from the bytes alone whether a file can matter at all.

A *marker* is a piece of text without which no rule can report anything: the names of collectives, rank
sources and frameworks. Matching must be cheap (it runs over every byte of the project) and may err only
towards reading too much.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..facts.lookup import marker_tokens

_LICENCE_TEXT = rb"(?![ \t]+(?:under|on)\b)"  # "distributed under the License is distributed on an ..."


class Prefilter:
    """One compiled pattern over bytes."""

    def __init__(self, extra_markers: Sequence[str] = ()) -> None:
        own = [last for marker in extra_markers if (last := marker.rpartition(".")[2])]
        tokens = sorted({*marker_tokens(), *(name.encode() for name in own)} - {b"distributed"})
        alternatives = [b"distributed" + _LICENCE_TEXT, *map(re.escape, tokens)]
        self._pattern = re.compile(b"|".join(alternatives))

    def matches(self, content: bytes) -> bool:
        """Whether the file contains a marker."""
        return self._pattern.search(content) is not None

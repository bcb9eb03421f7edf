"""Decides from the text alone whether a file can matter at all.

A *marker* is a piece of text without which no rule can report anything: the names of collectives, rank
sources and frameworks. Matching must be cheap (it runs over every byte of the project) and may err only
towards reading too much. The *collective pattern* is stricter: calls whose name alone tells a collective.

Cost: searching for one literal runs at memory speed, an alternation of sixty does not; literals that share
a piece of text are therefore searched for only in files that hold the piece.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache

from ..facts.lookup import marker_tokens

_PIECE = 4
_LICENCE = re.compile(rb"distributed(?![ \t]+(?:under|on)\b)")
"""Leaves out "distributed under the License is distributed on an "AS IS" BASIS"."""


class Prefilter:
    """Prepared once for a run; ``extra_markers`` are the user's own names, plain or dotted."""

    def __init__(self, extra_markers: Sequence[str] = ()) -> None:
        self._own = sorted({last for name in extra_markers if (last := name.rpartition(".")[2])})
        tokens = {*marker_tokens(), *(name.encode() for name in self._own)}
        self._distributed = b"distributed" in tokens
        self._groups = _group_by_piece(frozenset(tokens) - {b"distributed"})

    def matches(self, content: bytes) -> bool:
        """Whether the file contains a marker."""
        for piece, tokens in self._groups:
            if piece in content and any(token in content for token in tokens):
                return True
        return self._distributed and _LICENCE.search(content) is not None

    @cached_property
    def collective_calls(self) -> re.Pattern[str]:
        """Finds calls that are collectives by their name, or by their name after ``dist.``, and those that hide one."""
        from ..facts.conventions import UNKNOWN_METHODS
        from ..facts.tables import FUNCTIONS

        functions = {n.rpartition(".")[2] for n, fact in FUNCTIONS.items() if fact.op and "distributed" in n}
        telling = {n for n in functions if "_" in n} | {"barrier", "broadcast", *self._own}
        telling |= {name for name, entry in UNKNOWN_METHODS.items() if entry[2].op}
        alone = "|".join(map(re.escape, sorted(telling)))
        prefixed = "|".join(map(re.escape, sorted(functions - telling)))
        hiding = r"(?<=\.)backward|manual_backward|DistributedDataParallel|FullyShardedDataParallel|DDP|FSDP"
        hiding += r"|(?<=rainer\.)(?:fit|train|validate|test|predict|save_checkpoint)"
        hiding += r"|(?<=ccelerator\.)(?:gather|reduce|save_state|load_state|save_model|get_state_dict)"
        hiding += r"|get_forward_backward_func|forward_backward_(?:no_)?pipelining\w*"
        return re.compile(rf"\b(?:(?:{alone})|{hiding}|(?:dist|distributed|comm)\.(?:{prefixed}))[ \t]*\(")


@lru_cache(maxsize=8)
def _group_by_piece(tokens: frozenset[bytes]) -> list[tuple[bytes, list[bytes]]]:
    """Tokens under a piece of text that all of them hold, the piece shared by most first."""
    left = sorted(tokens)
    groups: list[tuple[bytes, list[bytes]]] = []
    while left:
        holders: dict[bytes, list[bytes]] = {}
        for token in left:
            for piece in {token[i : i + _PIECE] for i in range(max(len(token) - _PIECE, 0) + 1)}:
                holders.setdefault(piece, []).append(token)
        piece = min(holders, key=lambda p: (-len(holders[p]), p))
        if len(holders[piece]) == 1:
            return groups + [(token, [token]) for token in left]
        groups.append((piece, holders[piece]))
        left = [token for token in left if token not in holders[piece]]
    return groups

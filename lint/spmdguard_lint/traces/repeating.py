"""Work that a rank tries again after an exception, with a collective in each round of the loop.

Terminology: a clause *tries again* where it leads to the next round, while a rank without an exception leaves the loop.
The rank that has to try again calls the collectives of a round once more than the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from .columns import lines
from .judged import Candidate, Divergence, by_exception
from .nodes import Fallible, Handler, Try, every_node
from .pointing import next_round
from .terms import ABORT, Reader, Terms


def tried_again(
    candidate: Candidate, node: Try, handler: Handler, terms: Terms, quiet: Reader
) -> Iterator[Divergence]:
    """A clause that leads to another round, of a loop that the ranks without an exception leave."""
    repeated = next_round(candidate.chain, quiet)
    if repeated is None:
        return
    k = candidate.k.but(raises=lambda _name: ABORT, raise_key="abort")
    normal, after_error = quiet.read(node.body, candidate.body_k or candidate.k), quiet.read(handler.body, k)
    faults = [inner for inner in every_node(node.body) if isinstance(inner, Fallible)]
    if not faults or not _goes_round(terms, after_error) or _comes_back(terms, normal):
        return
    certainty = "likely" if any(fault.io or fault.own for fault in faults) else "possible"
    columns = lines(terms, after_error), lines(terms, normal)
    shown = handler.place, handler.text
    extra = {"again": repeated.text}
    yield by_exception(
        "swallow", candidate, handler, shown, columns, certainty, operation=repeated, extra=extra
    )


def _goes_round(terms: Terms, term: int) -> bool:
    """Whether a way leads to the next round before any operation."""
    item = terms.items[term]
    if item[0] == "alt":
        return _goes_round(terms, item[2]) or _goes_round(terms, item[3])
    return bool(item[0] == "next")


def _comes_back(terms: Terms, term: int) -> bool:
    """Whether any way leads to the next round."""
    seen: set[int] = set()
    stack = [term]
    while stack:
        term = stack.pop()
        if term in seen:
            continue
        seen.add(term)
        item = terms.items[term]
        if item[0] == "next":
            return True
        stack += {"op": item[2:3], "alt": item[2:4], "loop": item[3:5]}.get(item[0], ())
    return False

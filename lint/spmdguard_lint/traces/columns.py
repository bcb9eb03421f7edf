"""The two columns of a counter-example: what a term does, line by line."""

from __future__ import annotations

from .terms import Terms

MAX_LINES = 6
NEXT_ROUND = "next round of the loop"


def lines(terms: Terms, term: int) -> tuple[str, ...]:
    """A readable path through a term: its operations in order, loops and alternatives marked."""
    found: list[str] = []
    for _ in range(40):
        item = terms.items[term]
        kind = item[0]
        if len(found) >= MAX_LINES:
            found.append("...")
            break
        if kind == "op":
            op = terms.texts.get(term)
            found.append(f"{op.text}  (line {op.place.row})" if op is not None else str(item[1][0]))
            term = item[2]
        elif kind == "alt":
            term = item[2] if terms.operates[item[2]] else item[3]
        elif kind == "loop":
            found.append("in a loop:")
            term = item[2]
        elif kind == "next":
            found.append(NEXT_ROUND)
            break
        elif kind == "break":
            found.append("leaves the loop")
            break
        elif kind == "abort":
            found.append("leaves by the exception")
            break
        else:
            found.append("ends" if not found else "end")
            break
    return tuple(found)

"""Comments of a block that is taken away: on its header line, and behind its last statement."""

from __future__ import annotations

import libcst as cst


def kept_comments(suite: cst.BaseSuite) -> list[cst.EmptyLine]:
    """The comments that would go with a suite, as lines of their own."""
    lines: list[cst.EmptyLine] = []
    if isinstance(suite, cst.IndentedBlock):
        if suite.header.comment is not None:
            lines.append(cst.EmptyLine(comment=suite.header.comment))
        lines.extend(cst.EmptyLine(comment=line.comment) for line in suite.footer if line.comment is not None)
    elif isinstance(suite, cst.SimpleStatementSuite) and suite.trailing_whitespace.comment is not None:
        lines.append(cst.EmptyLine(comment=suite.trailing_whitespace.comment))
    return lines

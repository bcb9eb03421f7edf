"""Parse with libcst what the running interpreter's own grammar does not know, and hand on ``ast`` nodes.

The reader is exact where both parsers can read a file: the tree equals that of ``ast.parse``, positions
included (the tests compare them). What ``ast`` has no node for is mapped to its nearest meaning:
``type X = V`` to an assignment, ``except*`` to ``except`` before Python 3.11, a t-string to an f-string;
type parameters are dropped.

Known differences: before Python 3.12 ``ast`` places the parts of an f-string on the whole literal, here they
stand where they are; a compound statement whose last line ends in a semicolon ends before it; blanks between
an f-string's conversion and its closing brace are lost (libcst's round trip), which shifts the columns after
them. libcst refuses an annotated name in parentheses (``(x): int``).

Cost: three times libcst's own parse, thirty times ``ast.parse`` (measured on a file of 4,400 lines); only
files that ``ast.parse`` refuses come here.
"""

from __future__ import annotations

import ast
import sys
import threading
import warnings
from collections.abc import Callable

from .nesting import reject_deep_nesting

STACK_BYTES = 64 * 1024 * 1024
RECURSION_LIMIT = 20_000


def parse_newer(text: str, filename: str) -> ast.Module:
    """Parse ``text`` with the newest grammar libcst knows.

    Args:
        text: the decoded source; a byte order mark and any newline convention are accepted.
        filename: named in the error.

    Raises:
        SyntaxError: libcst cannot read it either, or it nests too deeply to be read safely.
    """
    normalised = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    reject_deep_nesting(normalised, filename)
    return _with_room_for_recursion(lambda: _parse(normalised, filename))


def _parse(text: str, filename: str) -> ast.Module:
    import libcst

    from .converter import Converter, UnknownSyntax
    from .spans import Spans

    try:
        module = libcst.parse_module(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Converter(Spans(module, text)).module(module)
    except libcst.ParserSyntaxError as error:
        where = (filename, error.raw_line, error.raw_column + 1, None)
        raise SyntaxError(error.message.partition("\n")[0] or "invalid syntax", where) from error
    except (UnknownSyntax, libcst.CSTLogicError, libcst.CSTValidationError) as error:
        raise SyntaxError(str(error), (filename, 1, 1, None)) from error
    except RecursionError as error:
        raise SyntaxError("too deeply nested", (filename, 1, 1, None)) from error
    except (ValueError, SyntaxError) as error:
        raise SyntaxError(f"invalid literal: {error}", (filename, 1, 1, None)) from error


def _with_room_for_recursion(work: Callable[[], ast.Module]) -> ast.Module:
    """Run ``work`` on a thread whose stack holds every nesting that ``reject_deep_nesting`` lets through.

    libcst's native parser recurses on the machine stack, and a stack overflow there ends the process.
    """
    outcome: list[ast.Module] = []
    failures: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failures.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    try:
        thread = threading.Thread(target=target, name="spmdguard-parse")
        thread.start()
        threading.stack_size(size)
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
    if failures:
        raise _as_syntax_error(failures[0])
    return outcome[0]


def _as_syntax_error(failure: BaseException) -> BaseException:
    """A panic of the native parser (a ``BaseException`` outside Python's own) is a file it cannot read."""
    if type(failure).__name__ == "PanicException":
        return SyntaxError(f"the parser gave up: {failure}")
    return failure

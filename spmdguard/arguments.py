"""Values on the command line that are not taken as they come."""

from __future__ import annotations

import argparse

_MOST = 1e9


def positive_number(text: str, needed: str) -> float:
    """A number above zero, for ``type=`` of an option.

    Raises:
        argparse.ArgumentTypeError: it is none; the message says what is ``needed``.
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < _MOST:
        raise argparse.ArgumentTypeError(f"{needed} is needed, got {text!r}")
    return value

"""Reading files whose grammar is newer than the running Python."""

from .parse import parse_newer

__all__ = ["parse_newer"]

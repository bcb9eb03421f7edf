"""``python -m spmdguard``."""

import sys

from spmdguard.cli import command

if __name__ == "__main__":
    sys.exit(command())

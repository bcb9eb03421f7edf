"""``python -m spmdguard``."""

import sys

from spmdguard.cli import main

if __name__ == "__main__":
    sys.exit(main())

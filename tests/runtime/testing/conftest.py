"""Import once, in the main thread, what torch imports lazily when a model is wrapped.

A simulated rank that is killed while it imports leaves a half-imported module behind, and torch registers
operators at import: a second import fails.
"""

from __future__ import annotations

import contextlib

with contextlib.suppress(ImportError):
    import torch._inductor.test_operators  # noqa: F401

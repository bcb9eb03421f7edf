"""With blocks inside suspended generators: a block that is left resumes the generator, which runs to its end.

Terminology: the *rest* of a ``@contextmanager`` is what it does after its yield. A block that ends with ``return``,
``break`` or ``continue`` is followed by the rest, and only then by what the jump leads to.
"""

from __future__ import annotations

from .nodes import Call, Yielded
from .terms import Continuation, Reader

WAYS = (("outer-return", "ret"), ("outer-break", "brk"), ("outer-continue", "cont"))


def after_rest(reader: Reader, call: Call, k: Continuation) -> Continuation:
    """The continuation of a with block's caller, in which jumps lead through the rest of the manager."""
    kinds = reader.ways_out(call.body)
    through = {way: _rest(reader, call, k, getattr(k, way)) for kind, way in WAYS if kind in kinds}
    return k.but(**through) if through else k


def _rest(reader: Reader, call: Call, k: Continuation, end: int) -> int:
    """The term of what a manager does after its yield, followed by ``end``."""
    probe = _Probe(
        reader.terms, None, reader.valuation, subgroups=reader.subgroups, group_key=reader.group_key
    )
    probe.operating, probe.leaving, probe.left = reader.operating, reader.leaving, reader.left
    probe.nobody_raises = reader.nobody_raises
    probe.found = end
    probe.read(call.body, k.but(fall=end, ret=end, calls=(*k.calls, call), brk=end, cont=end, outer=k))
    reader.left = probe.left
    return probe.found


class _Probe(Reader):
    """Reads a manager up to the place where the block of its caller runs, and keeps what follows there."""

    found = 0
    level = 0

    def _call(self, node: Call, k: Continuation) -> int:
        self.level += 1
        term = super()._call(node, k)
        self.level -= 1
        return term

    def _yielded(self, node: Yielded, k: Continuation) -> int:
        if not self.level:
            self.found = k.fall
            return k.fall
        self.level -= 1
        term = super()._yielded(node, k)
        self.level += 1
        return term

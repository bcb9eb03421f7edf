"""What the heap objects are: instances of project classes, and lists, dicts and sets by allocation site."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ..values.value import NO_TAINT, Taints, Value

if TYPE_CHECKING:
    from ..names.classes import ClassInfo


class ObjectInfo:
    """Kind ("instance", "list", "dict", "set") and, for an instance, its class.

    ``fills_in``: a dict that has each key that it is asked for (``defaultdict``). ``of_keys``: a list that stands for
    the keys of a dict, with which ``&`` and the like make sets.
    """

    __slots__ = ("cls", "fills_in", "kind", "of_keys", "symbolic")

    def __init__(self, kind: str, cls: ClassInfo | None, symbolic: bool) -> None:
        self.kind = kind
        self.cls = cls
        self.symbolic = symbolic
        self.fills_in = False
        self.of_keys = False


class ObjectTable:
    """Object identities; the fields live in the state's heap."""

    def __init__(self) -> None:
        self.infos: dict[Hashable, ObjectInfo] = {}

    def make(
        self,
        object_id: Hashable,
        kind: str,
        cls: ClassInfo | None = None,
        *,
        symbolic: bool = False,
        taint: Taints = NO_TAINT,
        trip: Taints | None = None,
    ) -> Value:
        if object_id not in self.infos:
            self.infos[object_id] = ObjectInfo(kind, cls, symbolic)
        return Value("obj", (object_id,), taint, trip)

    def info(self, value: Value) -> ObjectInfo:
        return self.infos[value.data[0]]

"""The heap of an abstract state: objects by name with their fields, in copies that share what neither has changed.

Method: a heap is a table that its copies share and never write to, and the changes since. Copying costs the changes;
so does comparing two copies of one heap. Where the changes have become many, the next copy makes a new table of all.
A whole project has tens of thousands of objects (one for each place that makes one, in each class), a branch changes
a few.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import compress, filterfalse
from operator import is_not
from typing import Protocol, TypeVar

from ..values.value import Value

Fields = dict[str, Value]
_K = TypeVar("_K")
_V = TypeVar("_V")
_Asked = TypeVar("_Asked", contravariant=True)
_Given = TypeVar("_Given", covariant=True)
_FEW = 100
_SHARE = 16  # changes are few up to this part of the table


class Heap:
    """Objects by name; written in place, copied where states part."""

    __slots__ = ("_base", "_changed")

    def __init__(self, objects: dict[Hashable, Fields] | None = None) -> None:
        self._base: dict[Hashable, Fields] = {}
        self._changed: dict[Hashable, Fields] = {} if objects is None else objects

    def copy(self) -> Heap:
        """Another heap with the same objects."""
        if len(self._changed) > max(_FEW, len(self._base) // _SHARE):
            self._base, self._changed = {**self._base, **self._changed}, {}
        other = Heap(self._changed.copy())
        other._base = self._base
        return other

    def get(self, object_id: Hashable) -> Fields | None:
        """The fields of an object, None where it is unknown."""
        found = self._changed.get(object_id)
        return self._base.get(object_id) if found is None else found

    def fields(self, object_id: Hashable) -> Fields:
        """The fields of an object, none where it is unknown; to read only."""
        found = self.get(object_id)
        return {} if found is None else found

    def __getitem__(self, object_id: Hashable) -> Fields:
        found = self.get(object_id)
        if found is None:
            raise KeyError(object_id)
        return found

    def __setitem__(self, object_id: Hashable, fields: Fields) -> None:
        self._changed[object_id] = fields

    def __contains__(self, object_id: Hashable) -> bool:
        return object_id in self._changed or object_id in self._base

    def update(self, objects: Mapping[Hashable, Fields]) -> None:
        """Put in more objects, or other fields of known ones."""
        self._changed.update(objects)

    def items(self) -> Iterator[tuple[Hashable, Fields]]:
        """All objects, the oldest first."""
        return iter({**self._base, **self._changed}.items())

    def differing(self, other: Heap) -> Iterator[tuple[Hashable, Fields]]:
        """The objects of the other heap that are not the very same here."""
        if self is other:
            return
        if self._base is not other._base:
            yield from differing(dict(self.items()), dict(other.items()))
            return
        base, own, others = self._base, self._changed, other._changed
        for object_id, fields in differing(own, others):
            if object_id in own or base.get(object_id) is not fields:
                yield object_id, fields
        for object_id in filterfalse(others.__contains__, own):
            if object_id in base and base[object_id] is not own[object_id]:
                yield object_id, base[object_id]

    def missing(self, other: Heap) -> list[Hashable]:
        """The names of objects that the other heap lacks."""
        own = self._changed if self._base is other._base else dict(self.items())
        unchanged = filterfalse(other._changed.__contains__, own)
        return list(filterfalse(other._base.__contains__, unchanged))


class _Lookup(Protocol[_Asked, _Given]):
    """A dict, or a heap."""

    def get(self, key: _Asked, /) -> _Given | None: ...


def differing(first: _Lookup[_K, _V], second: dict[_K, _V]) -> Iterator[tuple[_K, _V]]:
    """The entries of the second that are not the very same in the first; most are, and are passed over fast."""
    return compress(second.items(), map(is_not, map(first.get, second), second.values()))

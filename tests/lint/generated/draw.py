"""Where a grammar's choices come from: a seeded random generator (fast) or hypothesis (shrinks)."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Draw(ABC):
    """A source of choices; 0 is the simplest choice everywhere."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """A whole number with both ends included."""

    def pick(self, items: Sequence[T]) -> T:
        return items[self.integer(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent

    def weighted(self, items: Sequence[tuple[int, T]]) -> T:
        place = self.integer(0, sum(weight for weight, _ in items) - 1)
        for weight, item in items:
            if place < weight:
                return item
            place -= weight
        raise AssertionError("weights do not add up")


class RandomDraw(Draw):
    """Choices from ``random.Random(seed)``: the same seed gives the same program on every interpreter."""

    def __init__(self, seed: str) -> None:
        self._below = random.Random(seed).random

    def integer(self, low: int, high: int) -> int:
        return low + int(self._below() * (high - low + 1))


class HypothesisDraw(Draw):
    """Choices from a hypothesis example."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

"""Real ranks for tests: a warm process forks N ranks per scenario, bounds them, collects what they left."""

from .zygote import Ended, Ranks, Zygote

__all__ = ["Ended", "Ranks", "Zygote"]

"""Test training code for hangs in milliseconds: all ranks in one process, schedules chosen by seed."""

from spmdguard.testing.mismatch import CollectiveMismatch
from spmdguard.testing.ranks import Outcome
from spmdguard.testing.world import SimulatedWorld, fault_point

__all__ = ["CollectiveMismatch", "Outcome", "SimulatedWorld", "fault_point"]

"""Checkpoints that survive a kill at any instant: save in four phases, find the newest complete one."""

from spmdguard.checkpoint.finding import latest_checkpoint
from spmdguard.checkpoint.saving import PendingCheckpoint, save_checkpoint, start_checkpoint

__all__ = ["PendingCheckpoint", "latest_checkpoint", "save_checkpoint", "start_checkpoint"]

"""``spmdguard env``: facts of this machine, and advice that follows from them; needs no torch."""

from spmdguard.preflight.environment.command import env_command

__all__ = ["env_command"]

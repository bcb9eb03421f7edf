"""``spmdguard preflight``: what processes, hosts and links of this job can do, layer by layer."""

from spmdguard.preflight.links.command import preflight_command

__all__ = ["preflight_command"]

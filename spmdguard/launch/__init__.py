"""A launch that is named when it is wrong: identity, checks, and the handshake before the first collective."""

from spmdguard.launch.handshake import Launched, handshake
from spmdguard.launch.process_group import first_step_done, init_process_group

__all__ = ["Launched", "first_step_done", "handshake", "init_process_group"]

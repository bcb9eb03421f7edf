"""A launch that is named when it is wrong: identity, checks, and the handshake before the first collective."""

from spmdguard.launch.handshake import Launched, handshake

__all__ = ["Launched", "handshake"]

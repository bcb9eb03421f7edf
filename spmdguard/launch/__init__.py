"""A launch that is named when it is wrong: identity, checks, and the handshake before the first collective."""

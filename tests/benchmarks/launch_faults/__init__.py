"""Wrong launches of real processes, with the handshake and with bare torch."""

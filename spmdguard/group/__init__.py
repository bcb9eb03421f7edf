"""The only room that touches torch.distributed and its private API; torch is imported only when in use."""

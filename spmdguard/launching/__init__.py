"""Run a script under protection, without a change of it."""

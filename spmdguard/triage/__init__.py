"""``spmdguard triage``: which rank of a failed job failed first, and which messages are only consequences."""

"""Watch a run: where every rank stands, a report when it stalls, and one cause for all when a rank leaves."""

from spmdguard.watch.starting import start_watch

__all__ = ["start_watch"]

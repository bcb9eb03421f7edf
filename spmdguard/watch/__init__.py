"""Watch a run: where every rank stands, a report when it stalls, and one cause for all when a rank leaves."""

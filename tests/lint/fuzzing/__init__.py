"""Made-up and damaged sources for the linter: whatever it is given, it reports findings and never crashes."""

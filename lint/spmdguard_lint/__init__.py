"""The spmdguard linter: finds code in which ranks stop calling the same collectives in the same order."""

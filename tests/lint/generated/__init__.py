"""Generated programs: a grammar of small SPMD scripts, an oracle that runs each rank, a comparison."""

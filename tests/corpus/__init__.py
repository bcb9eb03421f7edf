"""Cases of real defects and correct idioms, how they are scored, and the recorded state of every case."""

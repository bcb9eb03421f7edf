"""How well stalls are explained: the bad programs of the case collection, run until they stand still."""

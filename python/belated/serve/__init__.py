"""`belated serve`: the studies of a store over HTTP, for programs that are not in Python."""

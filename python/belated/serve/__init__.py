"""`belated serve`: the studies of a store over HTTP, for programs in languages other than Python."""

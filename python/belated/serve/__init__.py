"""`belated serve`: the studies of a store over HTTP, for programs in other languages than Python."""

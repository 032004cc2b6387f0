"""Settings that the experiments of a paper share."""

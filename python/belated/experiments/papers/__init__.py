"""Settings that the replays of one paper share, one module per paper."""

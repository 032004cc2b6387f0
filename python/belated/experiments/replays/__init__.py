"""Replays of published experiments, one module each; a new one needs its file alone."""

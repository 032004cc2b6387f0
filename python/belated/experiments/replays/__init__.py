"""Replays of published experiments, one module each; to add one, add its file."""

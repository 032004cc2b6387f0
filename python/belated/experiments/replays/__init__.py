"""Replays, one module each."""

"""Replays of published experiments, with one module for each replay. To add a replay, add its file."""

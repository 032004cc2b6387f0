"""Runs: `maximize` and `minimize` a function on workers."""

from belated.run.run import Result, StopRun, maximize, minimize

__all__ = ["Result", "StopRun", "maximize", "minimize"]

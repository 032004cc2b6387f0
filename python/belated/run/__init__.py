"""Runs: `maximize` and `minimize` a function on workers."""

from belated.run.evaluations import RunError, StopRun
from belated.run.maximize import maximize, minimize
from belated.run.result import Result

__all__ = ["Result", "RunError", "StopRun", "maximize", "minimize"]

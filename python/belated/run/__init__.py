"""Runs: `maximize` and `minimize` a function on workers."""

from belated.errors import RunError
from belated.run.maximize import maximize, minimize
from belated.run.objective import RunningTrial
from belated.run.result import Result
from belated.run.stoppers import NoImprovement, StopRun, ValueReached

__all__ = ["NoImprovement", "Result", "RunError", "RunningTrial", "StopRun", "ValueReached", "maximize", "minimize"]

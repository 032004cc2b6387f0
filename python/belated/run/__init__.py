"""Runs: `maximize` and `minimize` a function on workers."""

from belated.run.maximize import maximize, minimize
from belated.run.objective import RunningTrial
from belated.run.result import Result
from belated.run.stoppers import NoImprovement, StopRun, ValueReached

__all__ = ["NoImprovement", "Result", "RunningTrial", "StopRun", "ValueReached", "maximize", "minimize"]

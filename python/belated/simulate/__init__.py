"""Simulated runs with late results."""

from belated.simulate.iteration_clock import *  # noqa: F403
from belated.simulate.iteration_clock import __all__  # noqa: F401

"""Simulated runs with delayed results: delay distributions, runs by iterations or in simulated time, and regret."""

from belated.simulate.delay_distributions import (
    ByPoint,
    Constant,
    DelayDistribution,
    Exponential,
    Geometric,
    HalfNormal,
    Listed,
    Pareto,
    Poisson,
    Uniform,
)
from belated.simulate.iteration_clock import History, InFlight, arrival_steps, simulate
from belated.simulate.regret import best_converted, cumulative_regret, n_converted, simple_regret
from belated.simulate.workers import simulate_workers

__all__ = [
    "ByPoint",
    "Constant",
    "DelayDistribution",
    "Exponential",
    "Geometric",
    "HalfNormal",
    "History",
    "InFlight",
    "Listed",
    "Pareto",
    "Poisson",
    "Uniform",
    "arrival_steps",
    "best_converted",
    "cumulative_regret",
    "n_converted",
    "simple_regret",
    "simulate",
    "simulate_workers",
]

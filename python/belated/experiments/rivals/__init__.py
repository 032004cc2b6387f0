"""Algorithms with which Wang et al. 2022 compare, as functions that request values until the time is over.

Notation: x is in the unit cube of d dimensions, and z is a fidelity in [0, 1] with cost λ(z). All algorithms maximise.
μ and σ are a posterior's mean and standard deviation, and β multiplies the variance. A rival takes ``evaluate(x, z)``,
d and a generator. A rival does not return; `wait_and_act` ends it.
"""

from belated.experiments.rivals.bayesian import (
    CoKriging,
    Posterior,
    boca,
    expected_improvement,
    gp_ei,
    gp_ucb,
    mf_gp_ucb,
    mf_sko,
)
from belated.experiments.rivals.clock import Batches, Evaluate, TimeIsUp, WaitAndAct, wait_and_act
from belated.experiments.rivals.gradients import dbgd, gradient_at, ogd, query_points
from belated.experiments.rivals.rejects import rejecting_cells, successive_rejects

__all__ = [
    "Batches",
    "CoKriging",
    "Evaluate",
    "Posterior",
    "TimeIsUp",
    "WaitAndAct",
    "boca",
    "dbgd",
    "expected_improvement",
    "gp_ei",
    "gp_ucb",
    "gradient_at",
    "mf_gp_ucb",
    "mf_sko",
    "ogd",
    "query_points",
    "rejecting_cells",
    "successive_rejects",
    "wait_and_act",
]

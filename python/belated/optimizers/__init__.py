"""Optimizers: their life cycle, settings, and names in the literature."""

from belated.optimizers.algorithms import algorithm, algorithms
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.life_cycle import NotFitted
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.random_search import RandomSearch
from belated.optimizers.settings import (
    GP,
    UCB,
    Censor,
    Hallucinate,
    Ignore,
    Initial,
    Integrate,
    Liar,
    LogEI,
    MaxVariance,
    Nearest,
    ThompsonSampling,
)
from belated.optimizers.trial import Trial

__all__ = [
    "GP",
    "UCB",
    "BayesOpt",
    "Censor",
    "Hallucinate",
    "Ignore",
    "Initial",
    "Integrate",
    "Liar",
    "LogEI",
    "MaxVariance",
    "Nearest",
    "NotFitted",
    "Optimizer",
    "RandomSearch",
    "ThompsonSampling",
    "Trial",
    "algorithm",
    "algorithms",
]

"""Optimizers: their life cycle, settings, and names in the literature."""

from belated.optimizers.algorithms import algorithm, algorithms
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.life_cycle import NotFitted, Optimizer
from belated.optimizers.random_search import RandomSearch
from belated.optimizers.trial import Trial

__all__ = ["BayesOpt", "NotFitted", "Optimizer", "RandomSearch", "Trial", "algorithm", "algorithms"]

"""Optimizers, the life cycle of their trials, and their names in the literature.

The module `settings` defines the values that can be passed as arguments of optimizers.
"""

from belated.errors import NotFitted, UnknownArgument
from belated.optimizers.algorithms import algorithm, algorithms
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.bpe import BPEDelay, SubExponential
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.random_search import RandomSearch
from belated.optimizers.tree import DUCB1, DUCBV, DUCB1Sigma, TreeSearch
from belated.optimizers.trial import Trial

__all__ = [
    "DUCB1",
    "DUCBV",
    "BPEDelay",
    "BayesOpt",
    "DUCB1Sigma",
    "NotFitted",
    "Optimizer",
    "RandomSearch",
    "SubExponential",
    "TreeSearch",
    "Trial",
    "UnknownArgument",
    "algorithm",
    "algorithms",
]

"""Arguments for algorithms of papers: bounds, acquisitions, pending policies, a delay model, constants of theorems.

The module also has functions that evaluate bounds of theorems.
"""

from belated.optimizers.bpe import SubExponential
from belated.optimizers.settings import UCBPE, AEGiS, LocalPenalization, MaxVariance, Nearest, PLAyBOOK, Theory
from belated.optimizers.theorems import (
    effective_dimension,
    information_gain,
    largest_information_gain,
    levels_within,
    regret_bound,
    simple_regret_bound,
)
from belated.optimizers.tree import DUCB1, DUCBV, DUCB1Sigma

__all__ = [
    "DUCB1",
    "DUCBV",
    "UCBPE",
    "AEGiS",
    "DUCB1Sigma",
    "LocalPenalization",
    "MaxVariance",
    "Nearest",
    "PLAyBOOK",
    "SubExponential",
    "Theory",
    "effective_dimension",
    "information_gain",
    "largest_information_gain",
    "levels_within",
    "regret_bound",
    "simple_regret_bound",
]

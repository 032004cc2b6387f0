"""Arguments for algorithms of papers: bounds, acquisitions, a pending policy, a delay model, constants of theorems. And
functions that evaluate bounds of theorems."""

from belated.optimizers.bpe import SubExponential
from belated.optimizers.settings import UCBPE, MaxVariance, Nearest, Theory
from belated.optimizers.theorems import levels_within, regret_bound
from belated.optimizers.tree import DUCB1, DUCBV, DUCB1Sigma

__all__ = [
    "DUCB1",
    "DUCBV",
    "UCBPE",
    "DUCB1Sigma",
    "MaxVariance",
    "Nearest",
    "SubExponential",
    "Theory",
    "levels_within",
    "regret_bound",
]

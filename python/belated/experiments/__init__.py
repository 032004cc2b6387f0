"""Replayed experiments, one module each; `belated replay NAME` runs them.

Every module offers ``DEFAULT_RUNS``, ``NEEDS`` (the libraries it imports), ``run(options) -> report``,
``table(report) -> str`` and ``draw(report, path)``; what they share is in `belated.experiments.runner`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

REPLAYS = {  # name: (module, what it replays)
    "lr": ("lr", "Verma et al. 2022, Figure 3: logistic regression on breast cancer, six algorithms, late results"),
    "svm": ("svm", "Verma et al. 2022, Figure 2 (a)-(d): a support vector machine on Pima diabetes, six algorithms"),
    "sdf-synthetic": ("sdf_synthetic", "Verma et al. 2022, Figures 1 and 5: samples of a Gaussian process on a grid"),
}


def load(name: str) -> ModuleType:
    """The module of a replay, imported only now because it stands on heavy libraries."""
    return import_module(f"{__name__}.replays.{REPLAYS[name][0]}")

"""Cross-validated accuracy of a classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def cross_validated(make: Callable[[], Any], x: Any, y: Any, n_folds: int) -> float:
    """Return the mean accuracy over folds, which are stratified and the same for all classifiers.

    Parameters
    ----------
    make : callable
        A function that returns a new classifier, with `fit` and `score`.
    x, y : arrays (n, columns) and (n,)
    n_folds : int
    """
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(n_folds).split(np.zeros(len(y)), y)
    return float(np.mean([make().fit(x[rest], y[rest]).score(x[fold], y[fold]) for rest, fold in folds]))

"""Uniformly random suggestions."""

from dataclasses import dataclass

from belated.optimizers.optimizer import Optimizer
from belated.optimizers.values import checks_keywords


@checks_keywords
@dataclass(eq=False, repr=False)
class RandomSearch(Optimizer, strategy="RandomSearch"):
    """Uniformly random suggestions: the baseline that every other optimizer has to beat.

    In a finite domain of up to 100,000 points every point is tried once before a point is repeated.

    Parameters
    ----------
    space : mapping, optional
        Name → `Real`, `Integer`, `Ordinal`, `Categorical`, a constant, or their shorthand; or pairs of bounds (see
        `Space`).
    context : mapping, optional
        Variables that are given with each suggestion instead of being chosen; declared like a space. Default None:
        none.
    candidates : array-like of shape (N, d), optional
        Suggest rows of this array instead. Exactly one of space and candidates is given.
    constraints : list of callable, optional
        Known constraints, for spaces only: functions that take the dict of params and return True or False, such as
        ``lambda p: p["a"] + p["b"] <= 1``. Every suggestion satisfies all of them. They are called often, in the thread
        that suggests, so they should be fast and depend only on the params. `RandomSearch` tries at most 10,000 points
        for a suggestion. If `RandomSearch` or `BayesOpt` finds no point that satisfies the constraints, it draws from a
        pool, for which as many points are tried once. To be pickled, constraints must be defined at the top level of a
        module. Default None: none.
    fidelity : Fidelity, optional
        Allows trials that are less than full evaluations. The default of a trial is the highest fidelity. Default None:
        every trial is a full evaluation.
    clock : {"iterations", "seconds"}, default "iterations"
        The unit of times and delays: suggestions started, or seconds.
    direction : {"maximize", "minimize"}, default "maximize"
    seed : int, optional
        From 0 to 2**64 - 1. Default None: a seed is drawn. In both cases `seed_` holds it.
    time : callable, optional
        For ``clock="seconds"``: a function that returns seconds. Default None: `time.time`.

    Raises
    ------
    InvalidSpace
        The space, the candidates or the context cannot be searched.
    InvalidSetting
        Another argument is invalid.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.RandomSearch({"x": (-1.0, 1.0)}, direction="minimize", seed=0)
    >>> for trial in optimizer.suggest(n=100):
    ...     trial.observe(trial.params["x"] ** 2)
    >>> optimizer.best_value_ < 0.01
    True
    """

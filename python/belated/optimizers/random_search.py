"""Uniformly random suggestions."""

from dataclasses import dataclass

from belated import _core
from belated.optimizers.life_cycle import Optimizer


@dataclass(eq=False, repr=False)
class RandomSearch(Optimizer):
    """Uniformly random suggestions: the baseline that every other optimizer has to beat.

    Parameters
    ----------
    space : mapping, optional
        Name → `Real`, `Integer`, `Categorical`, or their shorthand (see `Space`).
    candidates : array-like of shape (N, d), optional
        Suggest rows of this array instead. Exactly one of space and candidates is given.
    context : mapping, optional
        What is given rather than chosen at each suggestion, declared like a space.
    clock : {"iterations", "seconds"}
        What times and delays count: suggestions started, or seconds.
    direction : {"maximize", "minimize"}
    seed : int, optional
        From 0 to 2**64 - 1; None draws one. Either way `seed_` holds it.
    time : callable, optional
        For ``clock="seconds"``: a function that returns seconds, default `time.time`.

    Raises
    ------
    InvalidSpace
        A space, candidates or context that cannot be searched.
    InvalidSetting
        Any other argument that is not usable.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.RandomSearch({"x": (-1.0, 1.0)}, direction="minimize", seed=0)
    >>> for trial in optimizer.suggest(n=100):
    ...     trial.observe(trial.params["x"] ** 2)
    >>> optimizer.best_value_ < 0.01
    True
    """

    def _start(self, domain: _core.Domain, context_width: int) -> _core.Optimizer:
        return _core.Optimizer.random_search(domain, context_width, self.clock, self.seed_)

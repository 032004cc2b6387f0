"""Optimistic tree search: the space is halved repeatedly in the cell with the largest upper bound."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

from belated.optimizers.optimizer import Optimizer
from belated.optimizers.status import Tree
from belated.optimizers.values import Value, checks_keywords, takes

BoundName: TypeAlias = Literal["ducb1", "ducb1_sigma", "ducbv"]


@dataclass(frozen=True, repr=False)
class Bound(Value, argument=True):
    """An upper confidence bound on the mean of f over a cell: `DUCB1`, `DUCB1Sigma` or `DUCBV`."""


@checks_keywords
@dataclass(frozen=True, repr=False)
class DUCB1(Bound, name="ducb1"):
    """mean + range sqrt(2 log t/s), for s values in t steps: suits values in a known range.

    Parameters
    ----------
    range : float, optional
        The width of the range of the values, in units of f (1 in the literature). Default None: the distance of the
        best value above the median.
    """

    range: float | None = None


@checks_keywords
@dataclass(frozen=True, repr=False)
class DUCB1Sigma(Bound, name="ducb1_sigma"):
    """mean + sqrt(2 noise_std² log t/s): suits noise of a known size.

    Parameters
    ----------
    noise_std : float, optional
        Standard deviation of the noise, in units of f, 0 for none. It must be given.
    """

    noise_std: float | None = None


@checks_keywords
@dataclass(frozen=True, repr=False)
class DUCBV(Bound, name="ducbv"):
    """mean + sqrt(2 v log t/s) + 3 b log t/s, where v is the variance of the values observed in the cell.

    Parameters
    ----------
    b : float, optional
        A bound on the values, in units of f. Default None: 0.3 times the distance of the best value above the median.
    """

    b: float | None = None


@checks_keywords
@dataclass(eq=False, repr=False)
class TreeSearch(Optimizer, strategy="TreeSearch"):
    """Optimistic tree search: HOO, which is called PCTS with delays and POO with several smoothness parameters.

    The space is a tree of cells, each halved along its longest side. At each suggestion the search follows the larger
    upper bound from the whole space down to a cell without children, suggests a point of it, and halves it at once, so
    that results may come in any order and at any time (Wang et al. 2022, Algorithm 1). By default every other
    suggestion halves the best cell of a random size instead (Jones et al. 1993; Munos 2011), so that the search does
    not stay in one small cell. No model is fitted: a suggestion takes microseconds after a million trials as after ten.

    A failed trial leaves the mean of its cell unchanged. The cell is halved further, and a low rate of success lowers
    its bound. An abandoned trial is left out. If all parameters are discrete, a point may be suggested more than once,
    but not while it is in flight in its cell. Candidates and contexts are refused.

    Parameters
    ----------
    space, constraints, clock, direction, seed, time
        As for `RandomSearch`. The search tries at most 512 points in a cell; if none of them satisfies the constraints,
        the cell is permanently left out.
    bound : DUCB1, DUCB1Sigma, DUCBV or str, default "ducbv"
        The upper confidence bound of a cell; as strings "ducb1", "ducb1_sigma", "ducbv".
    nu : float, optional
        f varies by at most nu rho**h in a cell of depth h; nu is in units of f. Default None: a tenth of the distance
        of the best value above the median; with a fidelity, the largest such distance so far.
    rho : float or list of float, optional
        Between 0 and 1: with small values the search goes deep early, with large values it searches broadly. With a
        list there is one search for each value; they take turns on the same cells, and each uses the evaluations of the
        others. Default None: 0.25**(1/d) in d dimensions, with a fidelity 0.7**(1/d), with a horizon 0.95.
    horizon : int, optional
        The number of all trials, for parallel optimistic optimisation (POO, Grill et al. 2015). It searches with
        several values, of which rho is the largest; longer horizons have more values. Default None: only the given rho.
    sample : {"uniform", "centre"}, default "uniform"
        How the suggested point of a cell is chosen.
    recommendation : {"lower_bound", "mean"}, default "lower_bound"
        `recommend` takes the leaf of the largest mean - nu rho**h, or of the largest mean.

    front : bool, optional
        Whether every other suggestion ignores the bounds and halves the best cell among the cells down to a random
        depth: the best cells of every size, for any nu and rho. Default None: True if nu, rho and horizon are not given
        and there is no fidelity.

    For replays
        refresh : {"frozen", "exact"}, default "frozen"
            Whether t in log t of the bounds is rounded up to a power of two, so that a step costs no more than the
            depth of the tree; or exact, so that the bound of every cell changes at every suggestion.

    Raises
    ------
    InvalidSpace
        The space cannot be searched.
    InvalidSetting
        Another argument is invalid, or candidates or a context are given.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.TreeSearch({"x": (-1.0, 1.0), "y": (-1.0, 1.0)}, direction="minimize", seed=0)
    >>> for _ in range(500):
    ...     trial = optimizer.suggest()
    ...     trial.observe(trial.params["x"] ** 2 + trial.params["y"] ** 2)
    >>> optimizer.best_value_ < 1e-4
    True
    """

    _: KW_ONLY
    bound: Bound | BoundName = takes(Bound, "ducbv")
    nu: float | None = None
    rho: float | Sequence[float] | None = None
    horizon: int | None = None
    sample: Literal["uniform", "centre"] = "uniform"
    recommendation: Literal["lower_bound", "mean"] = "lower_bound"
    front: bool | None = None
    refresh: Literal["frozen", "exact"] = "frozen"

    @property
    def trees_(self) -> list[Tree]:
        """The tree of each value of rho: its smoothness parameters, number of cells and depth."""
        return [Tree(**each) for each in self._status()["instances"]]

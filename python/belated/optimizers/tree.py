"""Optimistic tree search: the space is halved again and again, where the upper bound is largest."""

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
    """mean + range sqrt(2 log t/s), for s values in t steps: for values in a known range.

    Parameters
    ----------
    range : float, optional
        The width of the range that values are in, in units of f (1 in the literature). Default None: how far the best
        value is above the median.
    """

    range: float | None = None


@checks_keywords
@dataclass(frozen=True, repr=False)
class DUCB1Sigma(Bound, name="ducb1_sigma"):
    """mean + sqrt(2 noise_std² log t/s): for noise of a known size.

    Parameters
    ----------
    noise_std : float, optional
        Standard deviation of the noise, in units of f, 0 for none. Default None: it has to be given.
    """

    noise_std: float | None = None


@checks_keywords
@dataclass(frozen=True, repr=False)
class DUCBV(Bound, name="ducbv"):
    """mean + sqrt(2 v log t/s) + 3 b log t/s, where v is the variance of the values observed in the cell.

    Parameters
    ----------
    b : float, optional
        Bounds the values, in units of f. Default None: 0.3 times how far the best value is above the
        median.
    """

    b: float | None = None


@checks_keywords
@dataclass(eq=False, repr=False)
class TreeSearch(Optimizer, strategy="TreeSearch"):
    """Optimistic tree search: HOO, with delays PCTS, with several smoothness parameters POO.

    The space is a tree of cells, each halved along its longest side. At each suggestion the search follows the larger
    upper bound from the whole space down to a cell without children, suggests a point of it, and halves it at once, so
    that results may come in any order and as late as they like (Wang et al. 2022, Algorithm 1). By default every other
    suggestion halves the best cell of a random size instead (Jones et al. 1993; Munos 2011), so that the search does
    not stay in one small cell. No model is fitted: a suggestion takes microseconds after a million trials as after
    ten.

    A failed trial leaves the mean of its cell unchanged. The cell is halved further, and a low rate of success lowers
    its bound. An abandoned trial is left out. Where all parameters are discrete a point may be suggested more than
    once, though not while it is in flight in its cell. Candidates and contexts are refused.

    Parameters
    ----------
    space, constraints, clock, direction, seed, time
        As for `RandomSearch`. Constraints are met by trying, at most 512 points in a cell; a cell in which none is
        found is left out for good.
    bound : DUCB1, DUCB1Sigma, DUCBV or str, default "ducbv"
        The upper confidence bound of a cell; as strings "ducb1", "ducb1_sigma", "ducbv".
    nu : float, optional
        f varies by nu rho**h at most in a cell of depth h: nu in units of f. Default None: a tenth of how far the
        best value is above the median; with a fidelity the farthest that it was so far.
    rho : float or list of float, optional
        Between 0 and 1: small values go deep soon, large ones search broadly. A list has one search for each, which
        take turns on the same cells: what one of them has evaluated costs the others nothing. Default None:
        0.25**(1/d) in d dimensions, with a fidelity 0.7**(1/d), with a horizon 0.95.
    horizon : int, optional
        The number of trials that there will be, for parallel optimistic optimisation (POO, Grill et al. 2015): several
        values from rho down, more of them for longer horizons. Default None: rho as it is given.
    sample : {"uniform", "centre"}, default "uniform"
        Which point of a cell is suggested.
    recommendation : {"lower_bound", "mean"}, default "lower_bound"
        `recommend` takes the leaf of the largest mean - nu rho**h, or of the largest mean.

    front : bool, optional
        Whether every other suggestion leaves the bounds aside and halves the best cell among those down to a random
        depth: the best cells of every size, for any nu and rho. Default None: where nu, rho and horizon are not
        given, and there is no fidelity.

    For replays
        refresh : {"frozen", "exact"}, default "frozen"
            Whether t in log t of the bounds is rounded up to a power of two, so that a step costs no more than the
            depth of the tree; or exact, so that every cell changes at every suggestion.

    Raises
    ------
    InvalidSpace
        A space that cannot be searched.
    InvalidSetting
        Any other argument that is not usable; candidates or a context.

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

"""Optimistic tree search, which repeatedly halves the cell with the largest upper bound."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

from belated.optimizers.optimizer import Optimizer
from belated.optimizers.values import Value, private

BoundName: TypeAlias = Literal["ducb1", "ducb1_sigma", "ducbv"]


@dataclass(frozen=True, repr=False)
class Bound(Value, argument=True):
    """An upper confidence bound on the mean of f over a cell: `DUCB1`, `DUCB1Sigma` or `DUCBV`."""


@dataclass(frozen=True, repr=False)
class DUCB1(Bound, name="ducb1"):
    """The bound mean + range sqrt(2 log t/s) for a cell with s values after t steps, if values are in a known range.

    Parameters
    ----------
    range : float, optional
        The width of the range of the values, in units of f (1 in the literature). Default None: the difference between
        the best value and the median.
    """

    range: float | None = None


@dataclass(frozen=True, repr=False)
class DUCB1Sigma(Bound, name="ducb1_sigma"):
    """The bound mean + sqrt(2 noise_std² log t/s), for noise whose standard deviation is known.

    Parameters
    ----------
    noise_std : float, optional
        Standard deviation of the noise, in units of f; 0 means exact values. This argument is required.
    """

    noise_std: float | None = None


@dataclass(frozen=True, repr=False)
class DUCBV(Bound, name="ducbv"):
    """The bound mean + sqrt(2 v log t/s) + 3 b log t/s, where v is the variance of the values observed in the cell.

    Parameters
    ----------
    b : float, optional
        A bound on the values, in units of f. Default None: 0.3 times the difference between the best value and the
        median.
    """

    b: float | None = None


@dataclass(frozen=True)
class Tree:
    """A tree of a `TreeSearch`.

    Attributes
    ----------
    nu, rho : float
        The assumed smoothness: f varies by at most nu rho**h in a cell of depth h. nu is in units of f.
    n_cells : int
        Number of visited cells.
    depth : int
        Depth of the deepest cell; the whole space has depth 0.
    """

    nu: float
    rho: float
    n_cells: int
    depth: int


@dataclass(eq=False, repr=False)
class TreeSearch(Optimizer, strategy="TreeSearch", lacks=("context", "candidates", "curve", "stopping", "outcomes")):
    """Optimistic tree search: HOO, its extension PCTS for delays, and its extension POO for unknown smoothness.

    The search builds a tree of cells. The root is the whole space, and the children of a cell are its halves along the
    longest side. For each suggestion, the search descends from the root to a leaf; at each cell it follows the child
    with the larger upper bound. The search suggests a point of the leaf and halves the leaf at once. Results may
    therefore arrive in any order and at any time (Wang et al. 2022, Algorithm 1). By default, only every second
    suggestion is chosen in this way. For each of the other suggestions, the search draws a random depth and halves the
    cell with the best mean down to this depth (Jones et al. 1993; Munos 2011). This prevents the search from staying in
    one small cell. The search does not fit a model: a suggestion takes microseconds even after a million trials.

    A failed trial does not change the mean of its cell. The cell is halved further, and a low rate of success lowers
    the bound of the cell. An abandoned trial is left out. If all parameters are discrete, a point may be suggested more
    than once, but not while the same point is in flight in the same cell. The search tries at most 512 points in a
    cell. If all of these points violate the constraints, the cell is permanently excluded. Candidates, contexts,
    learning curves and outcomes are not supported.

    Parameters
    ----------
    space, constraints, fidelity, clock, direction, seed, time
        As for `RandomSearch`.
    bound : DUCB1, DUCB1Sigma, DUCBV or str, default "ducbv"
        The upper confidence bound of a cell. The strings "ducb1", "ducb1_sigma" and "ducbv" denote these values with
        their defaults.
    nu : float, optional
        The smoothness of f: f varies by at most nu rho**h in a cell of depth h. nu is in units of f. Default None: a
        tenth of the difference between the best value and the median. If there is a fidelity, the default is the
        largest value of this difference so far.
    rho : float or list of float, optional
        Between 0 and 1. If rho is small, the search goes deep early; if rho is large, it searches broadly. If rho is a
        list, a separate search is made for each entry. These searches take turns on the same cells and share all
        evaluations. Default None: 0.25**(1/d) in d dimensions; 0.7**(1/d) if there is a fidelity; 0.95 if there is a
        horizon.
    horizon : int, optional
        The total number of trials, for parallel optimistic optimisation (POO, Grill et al. 2015). POO searches with
        several values of rho, of which the argument rho is the largest. If the horizon is longer, POO uses more values.
        Default None: the search uses only the argument rho.
    sample : {"uniform", "centre"}, default "uniform"
        The suggested point of a cell: a random point, or the centre.
    recommendation : {"lower_bound", "mean"}, default "lower_bound"
        The leaf from which `recommend` returns a point. "lower_bound": the leaf with the largest mean - nu rho**h.
        "mean": the leaf with the largest mean.
    front : bool, optional
        Whether every second suggestion ignores the bounds, and halves the cell with the best mean down to a random
        depth. The search then halves good cells of every size, independently of nu and rho. Default None: True if nu,
        rho, horizon and fidelity are not given.

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
    bound: Bound | BoundName = "ducbv"
    nu: float | None = None
    rho: float | Sequence[float] | None = None
    horizon: int | None = None
    sample: Literal["uniform", "centre"] = "uniform"
    recommendation: Literal["lower_bound", "mean"] = "lower_bound"
    front: bool | None = None
    # How the bounds compute log t. "frozen": t is rounded up to a power of two. "exact": t is not rounded, so the bound
    # of every cell changes at every suggestion.
    refresh: Literal["frozen", "exact"] = private("frozen")

    @property
    def trees_(self) -> list[Tree]:
        """The tree for each value of rho, with the smoothness parameters, the number of cells and the depth."""
        return [Tree(**each) for each in self._status()["instances"]]

"""Problems with one objective and bounds on other outcomes.

The simulated problems are the two of Gardner et al. 2014, Hartmann6 with a bound on the norm (from BoTorch's tutorial
on closed-loop optimization), the welded beam (Coello Coello 2000), and two problems with a feasible share below 1 %.
The stresses, the deflection and the buckling load of the beam vary by many orders of magnitude, so these outcomes are
log10 of the ratio to the limit.

The problems of tables are real measurements. The tuning tables are in tables.py and sklearn_tables.py: the
latency or the size of a network, or the processor time of fitting and scoring, is at most a quantile over the table. In
the table lnp3 of laboratory_tables.py, the particle diameter is minimised, and the encapsulation efficiency is at least
a quantile. The value of an outcome in a table is the mean over the replicates.
"""

import functools
import math
from dataclasses import dataclass

import laboratory_tables
import numpy as np
import sklearn_tables
import tables
from grids import Grid

from belated import Real
from belated.functions import HARTMANN6

N_RANDOM = 20_000  # random points for the spread of each outcome


@dataclass(frozen=True)
class Bound:
    """The range of an outcome."""

    low: float = -math.inf
    high: float = math.inf

    def holds(self, values):
        return (values >= self.low) & (values <= self.high)

    def excess(self, value):
        """Return the values that are ≤ 0 if the bound holds: one for each finite limit."""
        sides = [self.low - value] if math.isfinite(self.low) else []
        return sides + ([value - self.high] if math.isfinite(self.high) else [])


class Outcomes:
    """Outcomes at the points of a space.

    Parameters
    ----------
    name : str
    space : mapping
    n_trials : int
        The number of trials of a run.
    random : dict of str to array
        The true outcomes at random points, or at all points of a table.

    Attributes
    ----------
    outcomes : list of str
    spread : dict of str to float
        The standard deviation of each outcome over the random points.
    candidates : list of dict or None
        The points, if the problem is a list of candidates for `BayesOpt`.
    """

    candidates = None

    def __init__(self, name, space, n_trials, random):
        self.name, self.space, self.n_trials, self.random = name, space, n_trials, random
        self.outcomes = list(random)
        self.spread = {outcome: float(values.std()) for outcome, values in random.items()}


class Problem(Outcomes):
    """An objective, and bounds on other outcomes.

    Parameters
    ----------
    name, space, n_trials, random
        As for `Outcomes`.
    direction : {"minimize", "maximize"}
        The direction of the objective, which is the first outcome.
    bounds : dict of str to Bound
        The bounds of the other outcomes.
    optimum : float
        The best value of the objective among the feasible points.

    Attributes
    ----------
    sign : int
        1 if the objective is maximised, −1 if it is minimised.
    range : float
        The largest minus the smallest value of the objective at the random points.
    share : float
        The share of the random points that are feasible.
    """

    def __init__(self, name, space, direction, bounds, n_trials, optimum, random):
        super().__init__(name, space, n_trials, random)
        self.direction, self.bounds, self.optimum = direction, bounds, optimum
        self.objective = self.outcomes[0]
        self.sign = 1 if direction == "maximize" else -1
        self.range = float(np.ptp(random[self.objective]))
        self.share = float(self.feasible(random).mean())

    def feasible(self, values):
        """Return whether all bounds hold, for a dict of the outcomes or of arrays of the outcomes."""
        return functools.reduce(np.logical_and, (bound.holds(values[name]) for name, bound in self.bounds.items()))

    def regret(self, values):
        """Return the distance of the objective from the optimum, divided by the range, at most 1."""
        return np.minimum(self.sign * (self.optimum - values[self.objective]) / self.range, 1.0)


class Box:
    """The points of a box. The class comes before a subclass of `Outcomes` among the bases, which gets ``goal``.

    Parameters
    ----------
    name : str
    limits : list of pairs
        The range of each parameter.
    formula : callable
        A function of an array (n, d) of points, which returns a dict of arrays (n,).
    """

    def __init__(self, name, limits, formula, **goal):
        self.low, self.high = np.array(limits, dtype=float).T
        self.formula = formula
        random = formula(self.points(np.random.default_rng(0).random((N_RANDOM, len(limits)))))
        space = {f"x{i}": Real(low, high) for i, (low, high) in enumerate(limits, start=1)}
        super().__init__(name, space, random=random, **goal)

    def points(self, unit):
        """Return the points of the box for points of the unit cube."""
        return self.low + unit * (self.high - self.low)

    def __call__(self, params):
        """Return the true outcomes at a point."""
        found = self.formula(np.array([[params[name] for name in self.space]]))
        return {outcome: float(values[0]) for outcome, values in found.items()}


class Rows:
    """The rows of a `Grid`. The class comes before a subclass of `Outcomes` among the bases, which gets ``goal``.

    Parameters
    ----------
    name : str
    space : mapping
    columns : dict of str to array (n,)
        The outcomes of all points.
    listed : bool
        Whether `BayesOpt` gets the points as a list of candidates.
    """

    def __init__(self, name, space, columns, listed=False, **goal):
        self.grid = Grid(space)
        super().__init__(name, space, random=columns, **goal)
        if listed:
            self.candidates = [self.grid.params(i) for i in range(len(self.grid.rows))]

    def __call__(self, params):
        row = self.grid.find(params)
        return {outcome: float(values[row]) for outcome, values in self.random.items()}


class BoxProblem(Box, Problem):
    """A problem with bounds on a box."""


class TableProblem(Rows, Problem):
    """A problem with bounds on the rows of a table. The first column is the objective."""

    def __init__(self, name, space, columns, direction, bounds, n_trials, listed=False):
        allowed = functools.reduce(np.logical_and, (bound.holds(columns[each]) for each, bound in bounds.items()))
        objective = next(iter(columns.values()))[allowed]
        optimum = float(objective.max() if direction == "maximize" else objective.min())
        goal = {"direction": direction, "bounds": bounds, "n_trials": n_trials, "optimum": optimum}
        super().__init__(name, space, columns, listed, **goal)


def gardner1(x):
    a, b = x.T
    return {"f": np.cos(2 * a) * np.cos(b) + np.sin(a), "c": np.cos(a + b)}


def gardner2(x):
    a, b = x.T
    return {"f": np.sin(a) + b, "c": np.sin(a) * np.sin(b)}


def hartmann6(x):
    return {"f": HARTMANN6(x), "norm": x.sum(axis=1)}


def welded_beam(x):
    """The cost of a beam and its weld; x is the height and length of the weld, and the height and width of the beam."""
    h, length, t, b = x.T
    load, overhang = 6000.0, 14.0
    moment = load * (overhang + length / 2)
    squared = length**2 / 4 + (h + t) ** 2 / 4
    inertia = 2 * math.sqrt(2) * h * length * (length**2 / 12 + (h + t) ** 2 / 4)
    direct = load / (math.sqrt(2) * h * length)
    torsion = moment * np.sqrt(squared) / inertia
    shear = np.sqrt(direct**2 + direct * torsion * length / np.sqrt(squared) + torsion**2)
    stiffness, shear_modulus = 30e6, 12e6
    buckling = 4.013 * stiffness * t * b**3 / (6 * overhang**2)
    buckling = buckling * (1 - t / (2 * overhang) * math.sqrt(stiffness / (4 * shear_modulus)))
    return {
        "cost": 1.10471 * h**2 * length + 0.04811 * t * b * (overhang + length),
        "shear": np.log10(shear / 13600),
        "bending": np.log10(504000 / (b * t**2) / 30000),
        "deflection": np.log10(2.1952 / (t**3 * b) / 0.25),
        "buckling": np.log10(buckling / load),
        "overlap": h - b,
    }


def recipe(x):
    """A smooth problem with three bounds, one of which is a narrow range."""
    a, b, c, d, e = x.T
    return {
        "cost": 1 + 2 * a + 3 * b + 1.5 * c + d + 0.5 * e + 0.6 * a * np.cos(2 * math.pi * d),
        "purity": 1 - np.exp(-3.2 * a * (1 - 0.6 * (c - 0.7) ** 2) - 1.2 * b - 0.8 * e * (1 - e)),
        "pH": 4.5 + 3 * b - 1.5 * c**2 + 2 * d * e + 0.8 * np.sin(3 * a),
        "memory": 1.5 + 2.5 * c + 2 * d - 1.5 * d * e,
    }


_WIDE, _NARROW = np.array([0.7, 0.3, 0.6, 0.25]), np.array([0.25, 0.75, 0.3, 0.7])


def pockets(x):
    """A problem with two feasible regions. The better one is seven times smaller."""
    wide, narrow = (((x - centre) ** 2).sum(axis=1) for centre in (_WIDE, _NARROW))
    return {
        "loss": ((x - 0.4) ** 2 * [1.0, 0.5, 2.0, 0.7]).sum(axis=1) + 0.3 * x[:, 0] + 0.1 * np.sin(8 * x[:, 2]),
        "quality": np.exp(-wide / 0.32) + np.exp(-narrow / 0.12),
    }


def _box(name, limits, formula, direction, bounds, n_trials, optimum):
    goal = {"direction": direction, "bounds": bounds, "n_trials": n_trials, "optimum": optimum}
    return functools.cache(lambda: BoxProblem(name, limits, formula, **goal))


_SIX = [(0.0, 6.0)] * 2
_BEAM = [(0.125, 2.0), (0.1, 10.0), (0.1, 10.0), (0.1, 2.0)]
_BEAM_BOUNDS = {
    "shear": Bound(high=0.0),
    "bending": Bound(high=0.0),
    "deflection": Bound(high=0.0),
    "buckling": Bound(low=0.0),
    "overlap": Bound(high=0.0),
}
_RECIPE_BOUNDS = {"purity": Bound(low=0.95), "pH": Bound(6.8, 7.0), "memory": Bound(high=3.2)}


def network(name, table, metric, quantile):
    """Return the problem of a table of networks whose latency or size is at most a quantile."""

    def load():
        found = tables.open_table(table)
        measured = tables.quantity(table, metric)
        loss = tables.OPEN[table][0] == "hpolib"
        objective = ("log_loss", -found.means, "minimize") if loss else ("accuracy", found.means, "maximize")
        bounds = {metric: Bound(high=float(np.quantile(measured, quantile)))}
        return TableProblem(
            name, found.space, {objective[0]: objective[1], metric: measured}, objective[2], bounds, n_trials=80
        )

    return functools.cache(load)


def classifier(name, table, quantile):
    """Return the problem of a table of scikit-learn models whose processor time is at most a quantile."""

    def load():
        found = sklearn_tables.table(table)
        bounds = {"seconds": Bound(high=float(np.quantile(found.seconds, quantile)))}
        columns = {"accuracy": found.means, "seconds": found.seconds}
        return TableProblem(name, found.space, columns, "maximize", bounds, n_trials=80)

    return functools.cache(load)


def laboratory(**names):
    """Return the space of a laboratory table, and the columns of outcomes, in the units of the file.

    The arguments are the outcomes, each with its name in `laboratory_tables`. Every combination of levels must be a
    row.
    """
    columns = {}
    for outcome, name in names.items():
        table = laboratory_tables.load(name)
        grid = Grid(table.space)
        rows = [table.find(grid.params(i)) for i in range(len(grid.rows))]
        columns[outcome] = laboratory_tables.sign(name) * table.means[rows]
    return table.space, columns


@functools.cache
def lnp3():
    space, columns = laboratory(diameter="lnp3_diameter", encapsulation="lnp3_encapsulation")
    bounds = {"encapsulation": Bound(low=float(np.quantile(columns["encapsulation"], 0.95)))}
    return TableProblem("lnp3", space, columns, "minimize", bounds, n_trials=80, listed=True)


#: The functions that make the problems. The optima of the boxes are from many starts of SLSQP.
OPEN = {
    "gardner1": _box("gardner1", _SIX, gardner1, "minimize", {"c": Bound(high=0.5)}, 60, -2.0),
    "gardner2": _box("gardner2", _SIX, gardner2, "minimize", {"c": Bound(high=-0.95)}, 60, math.asin(0.95) - 1),
    "hartmann6": _box(
        "hartmann6", [(0.0, 1.0)] * 6, hartmann6, "maximize", {"norm": Bound(high=3.0)}, 100, HARTMANN6.optimum
    ),
    "welded_beam": _box("welded_beam", _BEAM, welded_beam, "minimize", _BEAM_BOUNDS, 100, 1.7248523085),
    "recipe": _box("recipe", [(0.0, 1.0)] * 5, recipe, "minimize", _RECIPE_BOUNDS, 100, 4.5608996275),
    "pockets": _box("pockets", [(0.0, 1.0)] * 4, pockets, "minimize", {"quality": Bound(low=0.93)}, 100, 0.1115222106),
    "lnp3": lnp3,
    "svc-digits-time": classifier("svc-digits-time", "svc-digits", 0.03),
    "cifar10-latency": network("cifar10-latency", "cifar10", "latency", 0.2),
    "cifar100-size": network("cifar100-size", "cifar100", "model_size", 0.2),
    "naval-size": network("naval-size", "naval_propulsion", "model_size", 0.2),
}
#: No default was chosen with these problems.
ASIDE = {
    "imagenet-latency": network("imagenet-latency", "imagenet", "latency", 0.2),
    "protein-size": network("protein-size", "protein_structure", "model_size", 0.2),
}

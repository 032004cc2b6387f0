"""Problems with two or three objectives, and the hypervolume that scores a set of their points.

    python benchmarks/front_problems.py make    # writes data/front_references.json
    python benchmarks/front_problems.py show

The simulated problems are Branin and the exponential function of Currin on the same box, ZDT1 to ZDT3 (Zitzler et al.
2000) and DTLZ2 (Deb et al. 2005) with six parameters, and the crashworthiness of a vehicle (Liao et al. 2008, problem
RE34 of Tanabe and Ishibuchi 2020). The vehicle has five thicknesses; its mass, the acceleration in a collision and the
intrusion of the toe board are minimised.

The problems of tables are real measurements:

* `lnp3`: the encapsulation efficiency of lipid nanoparticles is maximised, and the particle diameter is minimised. The
  drug loading is left out: one row of the table has both the best loading and the best efficiency.
* `redoxmers`: the difference of the absorption and the solvation energy of molecules are minimised. These two outcomes
  have the widest front of the three in the table (11 rows); the front of the reduction potential and the solvation
  energy has 4 rows.
* tuning tables of tables.py: the accuracy is maximised (or the log10 of the validation loss is minimised), and the
  log10 of the training time in seconds is minimised. Training times in a table vary by a factor of 100 to 10^5.

The value of an outcome in a table is the mean over the replicates.

The *front* is the set of true values that no point improves in one objective without making another worse. The nadir is
the worst value of each objective on the front. The reference of a problem is the nadir plus 10 % of the range of the
front, in the direction of worse values. The hypervolume of a set of values is the volume that the set dominates,
bounded by the reference. ``best`` is the hypervolume of the front. Both are stored in data/front_references.json, so
that scores do not depend on later changes. For tables, they are exact. For ZDT and for DTLZ2 with two objectives, they
are computed from 10^6 points of the known front, and for DTLZ2 with three objectives, the formula is known. For Branin
and Currin, points are concentrated near the front by repeated changes of nondominated points. For the vehicle, the
nadir is the worst value of each objective at the three points that minimise one objective, which is the published
nadir, and the hypervolume is an integral over directions (`ray_hypervolume`), because a set of points covers a surface
slowly.

The problems in `HELD_OUT` were set aside before any optimizer was run on them, and are never used to choose a default
for several objectives. Their tables without the time are among those with which the defaults for one objective were
chosen.
"""

import argparse
import functools
import itertools
import json
import math
import sys
from pathlib import Path

import numpy as np
import tables
from outcome_problems import Box, Outcomes, Rows, laboratory

from belated.functions import BRANIN, CURRIN_EXPONENTIAL

REFERENCES = Path(__file__).parent / "data" / "front_references.json"
N_TRIALS = 100
MARGIN = 0.1  # the distance of the reference from the nadir, as a share of the range of the front
N_CURVE = 1_000_000  # points of a known front
N_NEAR, N_ROUNDS = 10_000, 100  # evaluations of a round and rounds that concentrate points near a front
N_DIRECTIONS = 2048
N_STARTS = 60  # searches for the minimum of each loss


def nondominated(losses):
    """Return which rows of an array (n, m) no other row dominates; smaller is better. Equal rows are all kept."""
    losses = np.asarray(losses, dtype=float)
    kept = np.ones(len(losses), dtype=bool)
    if losses.shape[1] == 2:
        order = np.lexsort((losses[:, 1], losses[:, 0]))
        first, second = losses[order].T
        before = np.minimum.accumulate(np.concatenate([[np.inf], second[:-1]]))
        # A row with a smaller or equal first loss dominates, unless the rows are equal.
        smallest = np.concatenate([[0], np.flatnonzero(np.diff(first)) + 1])  # the first row of each first loss
        group = np.repeat(smallest, np.diff(np.concatenate([smallest, [len(first)]])))
        kept[order] = (second == second[group]) & (before[group] > second)
        return kept
    for i in np.lexsort(losses.T[::-1]):
        if kept[i]:
            kept &= ~((losses >= losses[i]).all(axis=1) & (losses > losses[i]).any(axis=1))
    return kept


def hypervolume(losses, reference):
    """Return the volume that the rows of an array (n, m) with m = 2 or 3 dominate; smaller is better.

    The volume is bounded by the reference (m,). Rows that are not better than the reference in all losses do not count.
    """
    losses = np.asarray(losses, dtype=float)
    losses = losses[(losses < reference).all(axis=1)]
    if not len(losses):
        return 0.0
    losses = losses[nondominated(losses)]
    if losses.shape[1] == 2:
        return _area(losses[np.argsort(losses[:, 0], kind="stable")], reference)
    # Between two successive values of the last loss, the section is the area of the points up to the first value.
    heights = np.diff(np.append(np.sort(losses[:, 2]), reference[2]))
    rank = np.argsort(np.argsort(losses[:, 2], kind="stable"))
    order = np.argsort(losses[:, 0], kind="stable")
    losses, rank = losses[order], rank[order]
    return float(sum(height * _area(losses[rank <= i], reference) for i, height in enumerate(heights) if height))


def _area(losses, reference):
    """Return the dominated area of the first two columns; the rows are sorted by the first."""
    lowest = np.minimum.accumulate(np.minimum(losses[:, 1], reference[1]))
    widths = np.diff(np.append(losses[:, 0], reference[0]))
    return float(widths @ (reference[1] - lowest))


def most_volume(losses, reference, n):
    """Return the indices of up to n rows that are chosen one after another, each with the most additional
    hypervolume."""
    losses, chosen, volume = np.asarray(losses, dtype=float), [], 0.0
    left = [i for i in np.flatnonzero(nondominated(losses)) if (losses[i] < reference).all()]
    while left and len(chosen) < n:
        gains = [hypervolume(losses[[*chosen, i]], reference) - volume for i in left]
        volume += max(gains)
        if max(gains) <= 0:
            break
        chosen.append(left.pop(int(np.argmax(gains))))
    return chosen


def ray_hypervolume(formula, points, reference, scale):
    """Return the hypervolume of the front of three losses on the unit cube.

    From the reference, a ray in the direction −u·scale leaves the dominated region after a length l(u). The volume is
    the integral of l³/3 over the directions, which is the mean of l³ times π/6. l(u) is the largest t for which a point
    of the cube has all losses ≤ reference − t·u·scale. SLSQP finds that point, starting from the two best points of the
    array.

    Parameters
    ----------
    formula : callable
        Array (n, d) → array (n, 3).
    points : array (n, d)
    reference, scale : array (3,)
    """
    from scipy import optimize
    from scipy.stats import qmc

    d, gains = points.shape[1], (reference - formula(points)) / scale
    height, turn = qmc.Sobol(2, seed=0).random(N_DIRECTIONS).T
    width, angle = np.sqrt(1 - height**2), turn * math.pi / 2
    cubes = 0.0
    for u in np.column_stack([width * np.cos(angle), width * np.sin(angle), height]):
        lengths = (gains / u).min(axis=1)
        longest = lengths.max()
        for start in np.argpartition(lengths, -2)[-2:]:

            def slack(z, u=u):
                return (reference - formula(z[None, :-1])[0]) / scale - z[-1] * u

            solved = optimize.minimize(
                lambda z: -z[-1],
                np.append(points[start], lengths[start]),
                jac=lambda z: np.append(np.zeros(d), -1.0),
                bounds=[(0.0, 1.0)] * d + [(None, None)],
                constraints=[{"type": "ineq", "fun": slack}],
                method="SLSQP",
                options={"ftol": 1e-9},
            )
            at = np.clip(solved.x[None, :-1], 0.0, 1.0)
            longest = max(longest, ((reference - formula(at)[0]) / scale / u).min())
        cubes += max(longest, 0.0) ** 3
    return float(cubes / N_DIRECTIONS * math.pi / 6 * np.prod(scale))


class FrontProblem(Outcomes):
    """Two or three objectives.

    Parameters
    ----------
    name, space, random
        As for `Outcomes`.
    directions : dict of str to {"minimize", "maximize"}
        The direction of each outcome.

    Attributes
    ----------
    signs : array (m,)
        1 for outcomes that are minimised, −1 for outcomes that are maximised: losses are signs times values.
    """

    def __init__(self, name, space, directions, random):
        super().__init__(name, space, N_TRIALS, random)
        self.directions = directions
        self.signs = np.array([1.0 if directions[outcome] == "minimize" else -1.0 for outcome in self.outcomes])

    def losses(self, values):
        """Return an array (n, m) for a dict of the outcomes (n,)."""
        return np.column_stack([np.asarray(values[outcome], dtype=float) for outcome in self.outcomes]) * self.signs

    @property
    def reference(self):
        """Return the value of each outcome at the reference."""
        return _stored()[self.name]["reference"]

    @property
    def reference_losses(self):
        return self.losses({outcome: [value] for outcome, value in self.reference.items()})[0]

    @property
    def best(self):
        """Return the hypervolume of the front."""
        return _stored()[self.name]["best"]

    def volume(self, values):
        """Return the hypervolume of a dict of outcomes (n,), as a share of the best."""
        return hypervolume(self.losses(values), self.reference_losses) / self.best


@functools.cache
def _stored():
    return json.loads(REFERENCES.read_text())["problems"]


class FrontBox(Box, FrontProblem):
    """Objectives on a box, which are minimised.

    Parameters
    ----------
    curve : callable or None
        Function of the first loss (n,) that gives the second loss on a curve that contains the front.
    """

    def __init__(self, name, limits, formula, curve=None):
        self.curve = curve
        outcomes = formula(np.array([low for low, _ in limits])[None])
        super().__init__(name, limits, formula, directions=dict.fromkeys(outcomes, "minimize"))

    def at(self, unit):
        """Return the losses (n, m) at points of the unit cube."""
        return self.losses(self.formula(self.points(unit)))

    def minima(self):
        """Return the points (m, N_STARTS, d) of the unit cube at which searches for the minimum of each loss ended."""
        from scipy import optimize

        starts = np.random.default_rng(1).random((N_STARTS, len(self.low)))
        bounds = [(0.0, 1.0)] * len(self.low)
        return np.array(
            [
                [optimize.minimize(lambda u, j=j: self.at(u[None])[0, j], start, bounds=bounds).x for start in starts]
                for j in range(len(self.outcomes))
            ]
        )

    def near_front(self):
        """Return the losses (n, 2) of nondominated points."""
        rng = np.random.default_rng(0)
        points = np.concatenate([rng.random((N_NEAR, len(self.low))), *self.minima()])
        losses = self.at(points)
        # Branin has three minima, which rounding makes unequal. Differences below 1e-5 standard deviations are ignored.
        unit = 1e-5 * losses[:N_NEAR].std(axis=0)
        for i in range(N_ROUNDS):
            kept = nondominated(np.round(losses / unit))
            points, losses = points[kept], losses[kept]
            # The steps have several sizes in each round, and become smaller from round to round.
            steps = 0.3 * 10 ** (-4.0 * i / N_ROUNDS - 2.0 * rng.random((N_NEAR, 1)))
            parents = points[rng.integers(len(points), size=N_NEAR)]
            children = np.clip(parents + steps * rng.standard_normal(parents.shape), 0.0, 1.0)
            points, losses = np.concatenate([points, children]), np.concatenate([losses, self.at(children)])
        return losses[nondominated(np.round(losses / unit))]

    def measure(self):
        """Return the nadir (m,), the range of the front (m,) and a function that gives the hypervolume of the front for
        a reference."""
        if self.name == "dtlz2-3":  # an eighth of the unit ball is not dominated
            return np.ones(3), np.ones(3), lambda reference: float(np.prod(reference)) - math.pi / 6
        if len(self.outcomes) == 3:
            found = self.at(self.minima().reshape(-1, len(self.low)))
            ends = found[found.argmin(axis=0)]
            d, width = len(self.low), np.ptp(ends, axis=0)
            corners = np.array(list(itertools.product([0.0, 1.0], repeat=d)))
            points = np.concatenate([np.random.default_rng(0).random((100_000, d)), corners])
            return ends.max(axis=0), width, lambda reference: ray_hypervolume(self.at, points, reference, width)
        if self.curve is not None:
            first = np.linspace(0.0, 1.0, N_CURVE)
            losses = np.column_stack([first, self.curve(first)])
            losses = losses[nondominated(losses)]
        else:
            losses = self.near_front()
        return losses.max(axis=0), np.ptp(losses, axis=0), functools.partial(hypervolume, losses)


class FrontRows(Rows, FrontProblem):
    """Objectives on the rows of a table."""

    def measure(self):
        """Return the nadir, the range of the front and a function of the reference, as for `FrontBox`."""
        losses = self.losses(self.random)
        front = losses[nondominated(losses)]
        return front.max(axis=0), np.ptp(front, axis=0), functools.partial(hypervolume, front)


def branin_currin(x):
    """Both functions of belated are maximised; Currin's function is minimised here."""
    x1, x2 = x.T
    return {"branin": -BRANIN(np.column_stack([15 * x1 - 5, 15 * x2])), "currin": CURRIN_EXPONENTIAL(x)}


def _zdt(second):
    """Return the formula of a problem of Zitzler et al.: ``second`` is the function of f1/g that multiplies g. For
    ZDT3, it also depends on f1."""

    def formula(x):
        g = 1 + 9 * x[:, 1:].mean(axis=1)
        return {"f1": x[:, 0], "f2": g * second(x[:, 0] / g, x[:, 0])}

    return formula


def _zdt1(ratio, first):
    return 1 - np.sqrt(ratio)


def _zdt2(ratio, first):
    return 1 - ratio**2


def _zdt3(ratio, first):
    return 1 - np.sqrt(ratio) - ratio * np.sin(10 * math.pi * first)


def _dtlz2(m):
    """Return the formula with m objectives; on the front, the last parameters are 1/2 and the norm is 1."""

    def formula(x):
        radius = 1 + ((x[:, m - 1 :] - 0.5) ** 2).sum(axis=1)
        cosines, sines = np.cos(x[:, : m - 1] * math.pi / 2), np.sin(x[:, : m - 1] * math.pi / 2)
        found = {}
        for i in range(m):
            found[f"f{i + 1}"] = radius * cosines[:, : m - 1 - i].prod(axis=1) * (sines[:, m - 1 - i] if i else 1.0)
        return found

    return formula


def vehicle_safety(x):
    """Fitted polynomials of the five thicknesses."""
    a, b, c, d, e = x.T
    return {
        "mass": 1640.2823 + x @ [2.3573285, 2.3220035, 4.5688768, 7.7213633, 4.4559504],
        "acceleration": (
            6.5856 + x @ [1.15, -1.0427, 0.9738, 0.8364, 0.0] + x**2 @ [-0.1106, 0.0, -0.3437, 0.1764, 0.0]
        )
        + (-0.3695 * a * d + 0.0861 * a * e + 0.3628 * b * d),
        "intrusion": (-0.0551 + x @ [0.0181, 0.1024, 0.0421, 0.0, 0.0] + x**2 @ [0.0, -0.0241, 0.0, 0.0109, 0.0])
        + (-0.0073 * a * b + 0.024 * b * c - 0.0118 * b * d - 0.0204 * c * d - 0.008 * c * e),
    }


def _box(name, limits, formula, curve=None):
    return functools.cache(lambda: FrontBox(name, limits, formula, curve))


def _experiments(name, outcomes, **names):
    """Return a problem of a laboratory table: ``outcomes`` are the directions."""

    def load():
        space, columns = laboratory(**names)
        return FrontRows(name, space, columns, listed=True, directions=outcomes)

    return functools.cache(load)


def _tuning(name):
    """Return the problem of the score and the time of a tuning table."""

    def load():
        found = tables.open_table(name)
        loss = tables.OPEN[name][0] == "hpolib"
        columns = {"log_loss": -found.means} if loss else {"accuracy": found.means}
        columns["log_seconds"] = np.log10(found.seconds)
        directions = {each: "maximize" if each == "accuracy" else "minimize" for each in columns}
        return FrontRows(name, found.space, columns, directions=directions)

    return functools.cache(load)


_SIX = [(0.0, 1.0)] * 6

#: The functions that make the problems.
OPEN = {
    "branin-currin": _box("branin-currin", [(0.0, 1.0)] * 2, branin_currin),
    "zdt1": _box("zdt1", _SIX, _zdt(_zdt1), lambda first: _zdt1(first, first)),
    "zdt2": _box("zdt2", _SIX, _zdt(_zdt2), lambda first: _zdt2(first, first)),
    "zdt3": _box("zdt3", _SIX, _zdt(_zdt3), lambda first: _zdt3(first, first)),
    "dtlz2-2": _box("dtlz2-2", _SIX, _dtlz2(2), lambda first: np.sqrt(1 - first**2)),
    "dtlz2-3": _box("dtlz2-3", _SIX, _dtlz2(3)),
    "vehicle-safety": _box("vehicle-safety", [(1.0, 3.0)] * 5, vehicle_safety),
    "lnp3": _experiments(
        "lnp3",
        {"encapsulation": "maximize", "diameter": "minimize"},
        encapsulation="lnp3_encapsulation",
        diameter="lnp3_diameter",
    ),
    "redoxmers": _experiments(
        "redoxmers",
        {"absorption": "minimize", "solvation": "minimize"},
        absorption="redoxmers_absorption",
        solvation="redoxmers_solvation",
    ),
    "naval_propulsion": _tuning("naval_propulsion"),
    "slice_localization": _tuning("slice_localization"),
    "phoneme": _tuning("phoneme"),
    "cifar10": _tuning("cifar10"),
}
#: No default is chosen with these problems.
HELD_OUT = {"protein_structure": _tuning("protein_structure"), "imagenet": _tuning("imagenet")}


def make():
    """Write the references of all problems."""
    found = {}
    for name, load in (OPEN | HELD_OUT).items():
        problem = load()
        nadir, width, volume = problem.measure()
        reference = nadir + MARGIN * width
        values = {"reference": reference, "nadir": nadir, "ideal": nadir - width}
        found[name] = {
            kind: {o: float(f"{v:.9g}") for o, v in zip(problem.outcomes, losses * problem.signs, strict=True)}
            for kind, losses in values.items()
        }
        stored = problem.losses({o: [v] for o, v in found[name]["reference"].items()})[0]
        found[name]["best"] = float(f"{volume(stored):.9g}")
        print(name, found[name], flush=True)
    content = {"command": "python benchmarks/front_problems.py make", "problems": found}
    REFERENCES.write_text(json.dumps(content, indent=1) + "\n")


def show():
    """Print the best hypervolume of each problem, and the share of it that random points have."""
    for name, load in (OPEN | HELD_OUT).items():
        problem = load()
        rng = np.random.default_rng(0)
        n = len(next(iter(problem.random.values())))
        shares = []
        for _ in range(20):
            rows = rng.choice(n, N_TRIALS, replace=False)
            shares.append(problem.volume({o: values[rows] for o, values in problem.random.items()}))
        print(f"{name}: best {problem.best:.6g}, {N_TRIALS} random points {np.mean(shares):.3f}")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["make", "show"])
    {"make": make, "show": show}[parser.parse_args(argv).command]()


if __name__ == "__main__":
    sys.exit(main())

"""Posteriors over random mixed spaces, and a slow search that tries all discrete moves.

A space has up to 20 dimensions, and 0 to 10 of them are discrete. The discrete dimensions are integers with few or many
levels, some of them on a logarithmic scale, ordinals, and categories of 2 to 10 choices. The model is the default model
of `BayesOpt`.

A *member* is a point of the space as a row of encoded columns. `levels` has an entry for each dimension: the columns
that encode each level of a discrete dimension, None for a continuous dimension.
"""

import numpy as np
from scipy.optimize import minimize

import belated as bl
from belated._core import GaussianProcess

N_POINTS = 20_000
N_STARTS = 32  # number of short climbs
N_CONVERGED = 6  # number of climbs that run until convergence and also try pairs of moves
N_REPAIRED = 8  # number of best moves after which the continuous columns are searched again
SHORT, LONG = 12, 500  # iterations of a local search
MANY = 64  # if an integer has more levels than this number, moves try only some of its levels


def dimension(rng, kinds):
    """Return a random discrete dimension."""
    kind = rng.choice(kinds)
    if kind == "category":
        return bl.Categorical([f"choice {i}" for i in range(rng.integers(2, 11))])
    if kind == "ten":
        return bl.Categorical([f"choice {i}" for i in range(10)])
    if kind == "ordinal":
        return bl.Ordinal([2**i for i in range(rng.integers(3, 9))])
    if kind == "few":
        return bl.Integer(1, int(rng.integers(2, 7)))
    return bl.Integer(1, int(rng.integers(50, 2000)), log=bool(rng.integers(2)))


def posterior(number):
    """Return a model fitted to 4 d to 12 d rows, its space, and the number of discrete dimensions."""
    rng = np.random.default_rng(50_000 + number)
    k = number % 11
    d = int(rng.integers(max(k, 2), 21))
    kinds = [["category"], ["ten"], ["few", "many", "ordinal"], ["category", "few", "many", "ordinal"]][rng.integers(4)]
    discrete = [dimension(rng, kinds) for _ in range(k)]
    dimensions = discrete + [bl.Real(0.0, 1.0)] * (d - k)
    order = rng.permutation(d)
    space = bl.Space({f"x{i}": dimensions[j] for i, j in enumerate(order)})
    levels = levels_of(space)
    n = int(rng.integers(2, 7)) * d
    # Values are drawn from a Gaussian process with a little noise. Some dimensions matter more than others.
    lengthscale = np.sqrt(d) * np.exp(rng.uniform(np.log(0.15), np.log(1.5), size=d))
    per_column = [np.full(columns(block), one) for block, one in zip(levels, lengthscale, strict=True)]
    truth = GaussianProcess("matern32", np.concatenate(per_column))
    x = members(rng, n, levels)
    y = truth.sample(x, 1, number)[0]
    # As in a real run, the second half of the points lies near the best point of the first half.
    truth.fit(x, y)
    near = steps(rng, x[np.argsort(-y)[: max(n // 10, 2)]], levels)
    near = near[rng.permutation(len(near))[:n]]
    x, y = np.vstack([x, near]), np.concatenate([y, truth.sample(near, 1, number + 1)[0]])
    y += 0.05 * rng.normal(size=len(y))
    optimizer = bl.BayesOpt(space, seed=number)
    optimizer.add([space.decode(row) for row in x], (y - y.mean()) / y.std())
    return optimizer._fitted("posterior")[0], space, k


def columns(block):
    return 1 if block is None else block.shape[1]


def levels_of(space):
    """Return the blocks of columns (levels, columns) of each dimension, or None for a continuous dimension."""
    found = []
    for dimension in space.values():
        core = dimension.core
        members = [] if core.n_levels is None else [core.encode(core.member(k)) for k in range(core.n_levels)]
        found.append(np.array(members) if members else None)
    return found


def members(rng, n, levels):
    """Return random members."""
    return np.hstack(
        [rng.random((n, 1)) if block is None else block[rng.integers(len(block), size=n)] for block in levels]
    )


def steps(rng, rows, levels):
    """Return 50 random steps from each row. A step changes the continuous columns a little and draws new levels for a
    fifth of the discrete dimensions."""
    near = np.repeat(rows, 50, axis=0)
    length = rng.choice([0.1, 0.02], size=len(near))
    for block, at in zip(levels, spans(levels), strict=True):
        if block is None:
            near[:, at.start] = np.clip(near[:, at.start] + length * rng.normal(size=len(near)), 0, 1)
        else:
            new = block[rng.integers(len(block), size=len(near))]
            near[:, at] = np.where(rng.random((len(near), 1)) < 0.2, new, near[:, at])
    return near


def spans(levels):
    """Return the columns of each dimension."""
    ends = np.cumsum([columns(block) for block in levels])
    return [slice(end - columns(block), end) for end, block in zip(ends, levels, strict=True)]


class DenseSearch:
    """A search from many members that alternates between local searches of the continuous columns and moves of discrete
    dimensions.

    Parameters
    ----------
    acquisition : Acquisition
    levels : list
        The result of `levels_of`.
    """

    def __init__(self, acquisition, levels):
        self.acquisition, self.levels, self.at = acquisition, levels, spans(levels)
        self.free = np.concatenate([np.full(columns(block), block is None) for block in levels])
        self.discrete = [i for i, block in enumerate(levels) if block is not None]

    def run(self, gp, rng):
        """Return the best value found, and the range of the acquisition over random members."""
        points = members(rng, N_POINTS, self.levels)
        values = self.acquisition(points)
        finite = values[np.isfinite(values)]
        best_rows = gp.x[np.argsort(-gp.predict(gp.x)[0])[:20]]
        near = steps(rng, best_rows, self.levels)
        points, values = np.vstack([points, near]), np.concatenate([values, self.acquisition(near)])
        starts = np.argsort(-values)[: 2 * N_STARTS : 2]
        ends = sorted((self.climb(points[i], values[i], SHORT) for i in starts), key=lambda end: -end[1])
        distinct = [ends[0]]
        for x, value in ends[1:]:
            if all(np.abs(x - other).max() > 1e-3 for other, _ in distinct):
                distinct.append((x, value))
        best = max(self.climb_by_pairs(x, value)[1] for x, value in distinct[:N_CONVERGED])
        best = max(best, ends[0][1])
        return best, best - finite.min()

    def polish(self, x, value, iterations):
        """Run L-BFGS-B over the continuous columns."""
        if not self.free.any():
            return x, value

        def negated(part):
            x_at = x.copy()
            x_at[self.free] = part
            found, gradient = self.acquisition.gradient(x_at)
            return -found, -np.asarray(gradient)[self.free]

        found = minimize(
            negated,
            x[self.free],
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, 1)] * int(self.free.sum()),
            options={"maxiter": iterations},
        )
        if not -found.fun > value:
            return x, value
        x = x.copy()
        x[self.free] = found.x
        return x, -found.fun

    def single_moves(self, x):
        """Return the moves that change one discrete dimension: to every level, but only to some levels of an integer
        with many levels."""
        moved = []
        for i in self.discrete:
            block = self.levels[i]
            if len(block) > MANY:
                block = np.vstack([self.around(i, x), block[:: len(block) // MANY]])
            rows = np.repeat(x[None], len(block), axis=0)
            rows[:, self.at[i]] = block
            moved.append(rows)
        return np.vstack(moved) if moved else np.empty((0, len(x)))

    def pair_moves(self, x):
        """Return the moves that change two discrete dimensions: to all pairs of levels, but only to neighbouring levels
        of integers with many levels."""
        moved = []
        for a, i in enumerate(self.discrete):
            for j in self.discrete[a + 1 :]:
                first, second = self.around(i, x), self.around(j, x)
                rows = np.repeat(x[None], len(first) * len(second), axis=0)
                rows[:, self.at[i]] = np.repeat(first, len(second), axis=0)
                rows[:, self.at[j]] = np.tile(second, (len(first), 1))
                moved.append(rows)
        return np.vstack(moved) if moved else np.empty((0, len(x)))

    def around(self, i, x):
        block = self.levels[i]
        if len(block) <= MANY:
            return block
        own = np.abs(block[:, 0] - x[self.at[i]]).argmin()
        return block[max(own - 4, 0) : own + 5]

    def climb(self, x, value, iterations):
        """Alternate local searches and the best moves of single dimensions until the value stops improving."""
        while True:
            x, before = self.polish(x, value, iterations)
            value = before
            while True:
                rows = self.single_moves(x)
                values = self.acquisition(rows)
                if not len(rows) or not values.max() > value + 1e-12 * abs(value):
                    break
                x, value = rows[values.argmax()], values.max()
            if not value > before:
                return x, value

    def climb_by_pairs(self, x, value):
        """Run `climb`. When single moves stop improving the value, also try pairs of moves, and run local searches
        after the best moves."""
        x, value = self.climb(x, value, LONG)
        while True:
            rows = np.vstack([self.single_moves(x), self.pair_moves(x)])
            if not len(rows):
                return x, value
            values = self.acquisition(rows)
            order = np.argsort(-values)
            if values[order[0]] > value + 1e-12 * abs(value):
                x, value = self.climb(rows[order[0]], values[order[0]], LONG)
                continue
            moved = order[np.abs(rows[order] - x).max(axis=1) > 0][:N_REPAIRED]
            tops = [self.polish(rows[i], values[i], SHORT) for i in moved]
            top = max(tops, key=lambda end: end[1])
            if not top[1] > value + 1e-9 * abs(value):
                return x, value
            x, value = self.climb(*top, LONG)

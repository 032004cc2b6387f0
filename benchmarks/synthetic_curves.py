"""Synthetic families of learning curves. Each function gives the curves of all configurations of a grid.

The space has five parameters and 3240 configurations, more than a run can start. A smooth function of the configuration
is a sum of random cosines, standardised over the grid. The curves of the five training seeds of a configuration differ
by an offset of the whole curve and by independent noise of each value.
"""

import numpy as np
from grids import Grid

from belated import Categorical, Ordinal

T = 40
N_SEEDS = 5
N = 3240
SPACE = {
    "a": Ordinal([0, 1, 2, 3, 4, 5]),
    "b": Ordinal([0, 1, 2, 3, 4, 5]),
    "c": Ordinal([0, 1, 2, 3, 4, 5]),
    "d": Ordinal([0, 1, 2, 3, 4]),
    "kind": Categorical(["x", "y", "z"]),
}


def smooth(rng, n=1):
    """Return n smooth functions on the grid, with mean 0 and standard deviation 1, as columns of shape (N, 1, 1)."""
    rows = Grid(SPACE).rows
    x = np.column_stack([rows[:, :4] / [5, 5, 5, 4], 0.7 * np.eye(3)[rows[:, 4]]])
    waves = np.cos(x @ rng.normal(scale=1.8, size=(x.shape[1], 30 * n)) + rng.uniform(0, 2 * np.pi, 30 * n))
    f = waves.reshape(len(x), n, 30).sum(axis=-1)
    f = (f - f.mean(axis=0)) / f.std(axis=0)
    return list(f.T[:, :, None, None])


def noise(rng, offset=0.1, each=0.05):
    """Return the differences between the training seeds, of shape (N, 5, T)."""
    return offset * rng.normal(size=(N, N_SEEDS, 1)) + each * rng.normal(size=(N, N_SEEDS, T))


STEPS = np.arange(1, T + 1) / T  # as a fraction of a full training


def crossing(rng):
    """Configurations that end higher learn more slowly."""
    f, other = smooth(rng, 2)
    rate = np.exp(-0.8 * f + 0.3 * other)  # the time constant is 1/(5·rate)
    return f - 3 * (np.exp(-5 * rate * STEPS) - np.exp(-5 * rate)) + noise(rng)


def late(rng):
    """Each curve rises at a different time, and is flat before and after. Higher curves rise later on average."""
    f, other = smooth(rng, 2)
    start = 0.45 + 0.15 * f + 0.1 * other
    rise = 1 / (1 + np.exp(-(STEPS - start) / 0.04))
    end = 1 / (1 + np.exp(-(1 - start) / 0.04))
    return -3 + (f + 3) * rise / end + noise(rng)


def overfitting(rng):
    """Curves rise and then fall, at different times and by different amounts."""
    f, speed, loss = smooth(rng, 3)
    rise = 2 * (1 - np.exp(-STEPS / (0.1 * np.exp(0.5 * speed))))
    fall = np.exp(loss) * np.maximum(0, STEPS - 0.3 + 0.1 * speed)
    return f + rise - fall + noise(rng)


def jumps(rng):
    """At one half and at three quarters of the training, all curves jump; the sizes of the jumps depend on the
    configuration, and the noise is smaller after a jump."""
    f, first, second = smooth(rng, 3)
    after, end = STEPS > 0.5, STEPS > 0.75
    rise = 1 - np.exp(-STEPS / 0.1)
    each = np.where(end, 0.3, np.where(after, 0.6, 1.0))
    jump = np.exp(0.4 * first) * after + 0.5 * np.exp(0.4 * second) * end
    return 0.7 * f + rise + jump + noise(rng, 0.1, 0.0) + each * noise(rng, 0.0, 0.2)


def divergence(rng):
    """Fast learners may diverge: the values are NaN from some step on, or collapse to a low value."""
    f, speed, other = smooth(rng, 3)
    curves = f + 0.5 * speed - 2 * np.exp(-STEPS / (0.15 * np.exp(-0.5 * speed))) + noise(rng)
    risk = 1 / (1 + np.exp(-3 * (speed - 1)))
    diverges = rng.random((N, N_SEEDS, 1)) < risk
    start = rng.uniform(0.05, 1.0, (N, N_SEEDS, 1))
    lost = diverges & (start < STEPS)
    return np.where(lost, np.where(other > 0.3, np.nan, -6.0), curves)


def pure_noise(rng):
    """Values have no trend. Their noise is larger than the differences between configurations."""
    (f,) = smooth(rng)
    return 0.3 * f + noise(rng, 0.3, 1.0)


#: Each entry is (function, declared value).
FAMILIES = {
    "crossing": (crossing, "last"),
    "late": (late, "last"),
    "overfitting-last": (overfitting, "last"),
    "overfitting-best": (overfitting, "best"),
    "jumps": (jumps, "last"),
    "divergence": (divergence, "last"),
    "noise": (pure_noise, "last"),
}


def make(name):
    """Return the space of a family, its values (N, 5, T), the duration of a step of each configuration (N,), and
    `Curve.value`."""
    function, declared = FAMILIES[name]
    return SPACE, function(np.random.default_rng([7, *name.encode()])), np.ones(N), declared

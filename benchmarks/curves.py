"""Families of learning curves, and runs of optimizers that may stop a training early, in simulated time.

A family has a space with finitely many configurations, several training seeds of each, and a curve of T values for each
of them. Higher values are better. The tables of real curves are described in curve_tables.py; the synthetic families
are in synthetic_curves.py.

A run has the following rules. There are four workers. A free worker asks the policy for a configuration, and trains it
step by step. A step takes 1/T of a full training for every configuration; with ``real_seconds``, it takes the mean
duration of a step of the configuration, divided by the mean over the configurations. After each step, the policy gets
the value and may stop the trial. The run ends when each worker has worked for the time of budget/workers full
trainings. The k-th trial gets the training seed number floor(u_k·r) of r seeds, with the same u_k for every policy with
the same seed.

The declared value of a complete curve is the last or the highest value. A trial counts if it was trained for all T
steps. The incumbent is the counted trial with the highest declared value. The regret is (best − f)/(best − median),
where f is the declared value of the incumbent's configuration, averaged over the training seeds. Best and median are
taken over the whole family. A stopped trial never counts, even if the declared value is the highest value. The regret
is recorded at 100 equally spaced times, the last of which is the end of the run, and is 1 before the first counted
trial. Regrets below 1e-3 count as 1e-3, and regrets above 10 count as 10. The score is the mean of log10 of the regret
over the 100 times. Lower is better.

A value of NaN means that the training has failed. The trial then ends, and does not count.
"""

import functools
import heapq
import time
from dataclasses import dataclass
from typing import NamedTuple

import curve_tables
import numpy as np
import synthetic_curves
from grids import Grid

FLOOR = 1e-3
LARGEST = 10.0
N_READINGS = 100


class Family:
    """Learning curves of all configurations of a space.

    Parameters
    ----------
    name : str
    space : mapping
        Dimensions with levels; the configurations are the rows of its `Grid`.
    values : array (n, r, T)
        The curves of r training seeds. If a value is NaN, all later values are NaN.
    seconds : array (n,)
        The mean duration of a step.
    declared : {"last", "best"}
        The value of a whole curve.

    Attributes
    ----------
    finals : array (n,)
        The declared values, averaged over the training seeds; −inf if a training failed.
    best, median : float
        Over all configurations.
    noise : float
        The standard deviation of the declared values of a configuration, over the better half of the configurations.
        The worse half is left out, because its values vary more where trainings diverge.
    """

    def __init__(self, name, space, values, seconds, declared="last"):
        self.name, self.space, self.values, self.seconds, self.declared = name, space, values, seconds, declared
        self.grid = Grid(space)
        self.n_seeds, self.n_steps = values.shape[1:]
        means = self.declare(values).mean(axis=-1)
        self.finals = np.where(np.isnan(means), -np.inf, means)
        self.best, self.median = float(self.finals.max()), float(np.median(self.finals))
        better = self.declare(values)[self.finals >= self.median]
        self.noise = float(np.sqrt(np.nanmean(better.var(axis=-1, ddof=1))))

    def declare(self, curves):
        """Return the declared values of complete curves (…, T)."""
        return curves[..., -1] if self.declared == "last" else curves.max(axis=-1)  # NaN if one value is NaN

    def reported(self, curves):
        """Return the curves (…, T) whose last values are the declared values: the curves, or their running maxima."""
        return curves if self.declared == "last" else np.maximum.accumulate(curves, axis=-1)

    def curve(self, params, seed):
        """Return the T values of one training; the training seed is ``seed`` modulo r."""
        return self.values[self.grid.find(params), seed % self.n_seeds].copy()

    def final(self, params):
        """Return the declared value of a configuration, averaged over the training seeds."""
        return float(self.finals[self.grid.find(params)])

    def regret(self, final):
        """Return the regret, which is 0 for the best configuration and 1 for the median."""
        return (self.best - final) / (self.best - self.median)


@functools.cache
def family(name):
    """Return the family with this name."""
    if name in synthetic_curves.FAMILIES:
        return Family(name, *synthetic_curves.make(name))
    task = curve_tables.TASKS[name]
    with np.load(curve_tables.DATA / f"curves-{name}.npz", allow_pickle=False) as arrays:
        stored = arrays["values"]
        values = np.where(stored == curve_tables.MISSING, np.nan, stored * float(arrays["quantum"]))
        return Family(name, task.space, values, arrays["seconds"].astype(float), task.declared)


REAL = list(curve_tables.OPEN)
SYNTHETIC = list(synthetic_curves.FAMILIES)
HELD_OUT = list(curve_tables.HELD_OUT)
UNSEEN = list(curve_tables.UNSEEN)
GROUPS = {
    "real": REAL,
    "synthetic": SYNTHETIC,
    "open": REAL + SYNTHETIC,
    "held-out": HELD_OUT,
    "unseen": UNSEEN,
}


class Trained(NamedTuple):
    """A trial of a run: the params, the number of steps, the declared value or None, and the time of the last step.

    ``full`` is the declared value of the whole curve, which the policy does not know if the trial is stopped.
    ``incumbent`` is the best value of the earlier trials at the end of this trial; None while the trial runs.
    """

    params: dict
    n_steps: int
    value: float | None
    time: float
    full: float
    incumbent: float | None = None


@dataclass(frozen=True)
class Run:
    """A simulated run.

    Attributes
    ----------
    regret : array (100,)
        At equally spaced times.
    trials : list of Trained
        In the order of the start. Trials that count have a value.
    seconds : float
        The processor time of the policy.
    """

    regret: np.ndarray
    trials: list
    seconds: float

    @property
    def score(self):
        return float(np.log10(np.clip(self.regret, FLOOR, LARGEST)).mean())

    @property
    def n_complete(self):
        return sum(trial.value is not None for trial in self.trials)

    def ended(self):
        """Return the complete and the stopped trials. Trials that fail, or that run at the end, are left out."""
        return [trial for trial in self.trials if trial.incumbent is not None]

    def winners(self, noise):
        """Return the trials whose whole curve exceeds the incumbent by two standard deviations of the noise."""
        return [trial for trial in self.ended() if trial.full > trial.incumbent + 2 * noise]


def simulate_curves(policy, family, seed, workers=4, budget=30, real_seconds=False):
    """Run a policy on a family.

    Parameters
    ----------
    policy : object
        With these methods. ``ask()`` returns the params of a new trial; the trials are numbered from 0 in the order of
        the calls. ``ask()`` may instead return the number of a stopped trial, which then continues after its last step,
        or None, which leaves the worker idle until the end. ``report(trial, step, value)`` gets the value after a step,
        1 ≤ step ≤ T, and returns whether the trial is stopped; the return value is ignored at the last step.
        ``end(trial, value)`` gets the declared value of a complete trial, or NaN if the training failed. The method is
        not called for stopped trials. The attribute ``now`` is set to the time in steps before each call.
    family : Family
    seed : int
        Determines the training seeds.
    workers : int
    budget : float
        The number of full trainings of all workers together.
    real_seconds : bool
        Whether steps take the durations of the family.

    Returns
    -------
    Run
    """
    n_steps = family.n_steps
    horizon = budget * n_steps / workers  # in steps
    unit = family.seconds.mean()
    rng = np.random.default_rng(seed)
    queue, trials, curves, costs, seconds = [], [], [], [], 0.0
    incumbent, regrets, now = -np.inf, [(0.0, 1.0)], 0.0

    def timed(method, *arguments):
        nonlocal seconds
        policy.now = now
        begin = time.process_time()
        returned = method(*arguments)
        seconds += time.process_time() - begin
        return returned

    def start():
        asked = timed(policy.ask)
        if isinstance(asked, dict):
            curves.append(family.curve(asked, int(rng.random() * family.n_seeds)))
            trials.append(Trained(asked, 0, None, now, float(family.declare(curves[-1]))))
            costs.append(family.seconds[family.grid.find(asked)] / unit if real_seconds else 1.0)
            asked = len(trials) - 1
        if asked is not None:
            heapq.heappush(queue, (now + costs[asked], asked))

    for _ in range(workers):
        start()
    while queue and queue[0][0] <= horizon:
        now, number = heapq.heappop(queue)
        curve, step = curves[number], trials[number].n_steps + 1
        trials[number] = trials[number]._replace(n_steps=step, time=now)
        value = float(curve[step - 1])
        if np.isnan(value):
            timed(policy.end, number, value)
        elif not timed(policy.report, number, step, value) and step < n_steps:
            heapq.heappush(queue, (now + costs[number], number))
            continue
        elif step < n_steps:
            trials[number] = trials[number]._replace(incumbent=incumbent)
        else:
            value = trials[number].full
            trials[number] = trials[number]._replace(value=value, incumbent=incumbent)
            timed(policy.end, number, value)
            if value > incumbent:
                incumbent = value
                regrets.append((now, family.regret(family.final(trials[number].params))))
        start()

    times, values = np.array(regrets).T
    at = horizon * np.arange(1, N_READINGS + 1) / N_READINGS
    return Run(values[np.searchsorted(times, at, side="right") - 1], trials, seconds)

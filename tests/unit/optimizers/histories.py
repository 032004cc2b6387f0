"""Random histories for tests. A history consists of the arguments of an optimizer and of steps, which are run on the
optimizer."""

import math
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

import belated as bl
from tests.unit.optimizers.definitions import BOX, CONTEXT, KERNELS, ROWS, Dense

FULL = os.environ.get("BELATED_FULL") == "1"
policies = pytest.mark.parametrize("pending", ["ignore", "hallucinate", "censor"])
few = settings(
    max_examples=1000 if FULL else 50,
    phases=[phase for phase in Phase if phase != Phase.explain],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def make(**arguments):
    """Construct an optimizer; an argument named ``argument__field`` sets a field of a setting."""
    nested = {name: value for name, value in arguments.items() if "__" in name}
    return bl.BayesOpt(**{name: arguments[name] for name in arguments.keys() - nested}).set_params(**nested)


@st.composite
def histories(draw, **fixed):
    """Draw the arguments of an optimizer and the steps of its history."""
    arguments = {
        "seed": draw(st.integers(0, 9)),
        "acquisition": draw(st.sampled_from(["ucb", "log_ei", "max_variance"])),
        "pending": draw(st.sampled_from(["censor", "hallucinate", "censor", "ignore", "liar", "nearest"])),
        "surrogate__kernel": draw(st.sampled_from(KERNELS)),
        "direction": draw(st.sampled_from(["maximize", "minimize"])),
        "clock": draw(st.sampled_from(["iterations", "seconds"])),
        "window": draw(st.sampled_from([None, 1.5, 5.0])),
        "surrogate__targets": draw(st.sampled_from(["standardized", "raw"])),
        "surrogate__mean": draw(st.sampled_from(["zero", "estimated", "auto", "median", 0.7])),
        "initial": draw(st.integers(0, 4)),
        "surrogate__noise_std": draw(st.sampled_from([math.sqrt(1e-3), math.sqrt(1e-1)])),
        "surrogate__n_restarts": 1,
    }
    if draw(st.booleans()):
        arguments |= {"surrogate__lengthscale": draw(st.sampled_from([0.2, 1.0])), "surrogate__signal_std": 1.0}
    if arguments["acquisition"] == "ucb":
        arguments |= {"acquisition__beta": 1.0, "acquisition__predictive_std": draw(st.booleans())}
    if arguments["pending"] == "liar":
        arguments["pending__value"] = draw(st.sampled_from(["min", "mean", "max", 0.3]))
    if arguments["pending"] == "nearest":
        arguments["pending__k"] = draw(st.integers(1, 5))
    if arguments["pending"] == "censor":
        arguments["pending__floor"] = draw(st.sampled_from([None, -3.0, 3.0]))  # the floor 3 is not a lower bound of f
        if arguments["window"] is not None:
            arguments["pending__late"] = draw(st.sampled_from(["discard", "accept", "discard"]))
    if not fixed:
        arguments |= {"space": BOX} if draw(st.booleans()) else {"candidates": ROWS}
    arguments["context"] = draw(st.sampled_from([None, CONTEXT]))
    kinds = ["suggest"] * 8 + ["observe"] * 6 + ["batch", "fail", "abandon", "give up", "add", "add", "amend", "wait"]
    length = draw(st.integers(5, 60))
    steps = st.tuples(st.sampled_from(kinds), st.integers(0, 10**6))
    return arguments | fixed, draw(st.lists(steps, min_size=length, max_size=length))


class Run:
    """Run a history; return the optimizer, and the trials whose points the optimizer chose."""

    def __init__(self, arguments):
        if arguments["clock"] == "seconds":
            arguments = arguments | {"time": np.zeros(()).item}
        self.opt = make(**arguments)
        self.suggested = set()

    def now(self):
        return len(self.suggested) if self.opt.clock == "iterations" else self.opt.time()

    def point(self, rng):
        if self.opt.candidates is not None:
            return int(rng.integers(len(ROWS)))
        x, lr = 4 * rng.random() - 1, 10 ** (-4 * rng.random())
        return {"x": x, "lr": lr, "n": rng.integers(2, 8), "m": rng.integers(1, 65), "c": "uvw"[rng.integers(3)]}

    def context(self, rng):
        return None if self.opt.context is None else {"age": 10.0 * rng.integers(6), "site": "ab"[rng.integers(2)]}

    def rows(self, rng, n):
        """Return random rows of the model: uniform numbers in the columns of numeric parameters, and one-hot vectors in
        the columns of a category."""
        parts = [rng.random((n, 2))]
        if self.opt.candidates is None:
            parts = [rng.random((n, 4)), np.eye(3)[rng.integers(3, size=n)]]
        if self.opt.context is not None:
            parts += [rng.random((n, 1)), np.eye(2)[rng.integers(2, size=n)]]
        return np.hstack(parts)

    def step(self, what, number):
        opt, rng = self.opt, np.random.default_rng(number)
        value = float(np.round(3 * rng.normal(), 1))  # coarse, so values repeat
        if what in ("suggest", "batch"):
            context = self.context(rng)
            trials = opt.suggest(1 if what == "suggest" else 3, context=context)
            self.suggested |= {trial.number for trial in trials}
        elif what == "add":
            opt.add(self.point(rng), rng.choice([None, value]), context=self.context(rng), std=self.std(number))
        elif what == "wait" and opt.clock == "seconds":
            opt.time.__self__[...] += 3 * rng.random()
        elif what != "wait":
            trials = [trial for trial in opt.trials if (trial.value is None) == (what != "amend")]
            if trials:
                trial = trials[number % len(trials)]
                if what in ("fail", "give up"):
                    trial.fail()
                if what in ("abandon", "give up"):
                    trial.abandon()
                if what in ("observe", "amend"):
                    trial.observe(value, amend=True, std=self.std(number))

    @staticmethod
    def std(number):
        return 0.1 + (number % 7) / 10 if number % 4 == 0 else None

    def surrogate(self, pending):
        found = self.opt._log.surrogate(self.opt._problem.wall_time(), pending)
        if found is None:
            return None
        model, center, scale, slope = found
        # The model maximises, so the center is negated.
        return model, -center if self.opt.direction == "minimize" else center, scale, slope

    def dense(self, theta, pending, suggests=False, units=None):
        return Dense(self.opt, self.suggested, self.now(), theta, pending, suggests, units)

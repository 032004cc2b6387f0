"""Every kind of optimizer under random use. After each step the tests check laws that hold for all strategies.

Trials are suggested, observed, failed, abandoned and withdrawn in any order. Some values are outliers, and some are
reported wrongly and then amended.
"""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import belated as bl
from tests.contract.optimizers.strategies import FULL, core_of, replayed, twin_of

# The candidates are at least a fifth of the box width apart, so every strategy treats them as different points.
CANDIDATES = np.stack(np.meshgrid(np.linspace(0, 1, 4), np.linspace(-2, 3, 3)), axis=-1).reshape(-1, 2)
# The same points, where y is a category.
NAMED = [{"x": x, "y": f"level {y}"} for x, y in CANDIDATES.tolist()]
DOMAINS = {
    "box": {"space": {"x": (0.0, 1.0), "y": (-2.0, 3.0)}},
    "discrete": {"space": {"n": (0, 3), "c": ["u", "v", "w"]}},
    "candidates": {"candidates": CANDIDATES},
    "named": {"candidates": NAMED},
}
QUICK = {"surrogate": bl.GP(n_restarts=1, n_refit_restarts=1), "initial": 3}
KINDS = {
    "random": lambda **arguments: bl.RandomSearch(**arguments),
    "tree": lambda **arguments: bl.TreeSearch(**arguments),
    "bpe": lambda **arguments: bl.BPEDelay(horizon=1000, lengthscale=0.3, noise_std=0.1, **arguments),
    **{
        name: lambda name=name, **arguments: bl.BayesOpt(acquisition=name, **QUICK, **arguments)
        for name in ("log_ei", "ucb", "thompson", "max_variance", "ucb_pe")
    },
    "GP-UCB-SDF": lambda **arguments: bl.algorithm("GP-UCB-SDF", window=4, **arguments),
    "asy-TS": lambda **arguments: bl.algorithm("asy-TS", **arguments),
    "PLAyBOOK": lambda **arguments: bl.algorithm("PLAyBOOK", **arguments),
    "AEGiS": lambda **arguments: bl.algorithm("AEGiS", **arguments),
}
SUPPORTED = {kind: [name for name in DOMAINS if "candidates" not in DOMAINS[name] or kind != "tree"] for kind in KINDS}
SUPPORTED |= {"PLAyBOOK": ["box"], "AEGiS": ["box"]}

# The states in which a trial accepts a value.
OBSERVABLE = ("pending", "failed", "abandoned", "withdrawn")


def f(opt, trial):
    """A smooth function of the trial's point, with its optimum inside the domain."""
    if trial.index is not None:
        x, y = CANDIDATES[trial.index]
    elif "n" in trial.params:
        x, y = trial.params["n"] / 3, "uvw".index(trial.params["c"])
    else:
        x, y = trial.params["x"], trial.params["y"]
    return -((x - 0.3) ** 2) - 0.1 * (y - 1.2) ** 2


def place(trial):
    """Return the trial's point as two numbers; real parameters are scaled to [0, 1]."""
    if trial.index is not None:
        return (float(trial.index), 0.0)
    if "n" in trial.params:
        return (float(trial.params["n"]), float("uvw".index(trial.params["c"])))
    return (trial.params["x"], (trial.params["y"] + 2) / 5)


class RandomUse(RuleBasedStateMachine):
    """An optimizer under test, and the state that each trial should have according to the rules of the life cycle."""

    kind = "random"

    @initialize(data=st.data(), seed=st.integers(0, 2**32), minimize=st.booleans(), exact=st.booleans())
    def start(self, data, seed, minimize, exact):
        self.domain = data.draw(st.sampled_from(SUPPORTED[self.kind]), label="domain")
        self.sign = -1 if minimize else 1
        self.opt = KINDS[self.kind](**DOMAINS[self.domain], seed=seed, direction="minimize" if minimize else "maximize")
        # If the function has no noise, each value is reported with std=0.
        self.std = 0.0 if exact else None
        self.states, self.values, self.mistyped = {}, {}, set()
        # The withdrawn values of each trial, as (number, value).
        self.withdrawn = set()
        # The points of trials that were abandoned after the last result.
        self.given_up = []

    # The random actions.

    @rule(n=st.integers(1, 3))
    def suggest(self, n):
        for _ in range(n):
            self.check_new(self.opt.suggest())

    @rule(data=st.data())
    def observe(self, data):
        trial = self.drawn(data, OBSERVABLE)
        if trial is not None:
            amend = self.states[trial.number] == "withdrawn" and data.draw(st.booleans(), label="amend")
            self.value(trial, self.sign * f(self.opt, trial), amend)

    @rule(data=st.data())
    def withdraw(self, data):
        trial = self.drawn(data, ("observed", "failed"))
        if trial is not None:
            trial.withdraw(reason="contaminated")
            if trial.number in self.values:
                self.withdrawn.add((trial.number, self.values.pop(trial.number)))
            self.states[trial.number] = "withdrawn"
            self.mistyped.discard(trial.number)

    @rule(data=st.data())
    def refuse_withdrawal(self, data):
        """A list with one trial that cannot be withdrawn changes nothing."""
        wrong, right = self.drawn(data, ("pending", "abandoned", "withdrawn")), self.drawn(data, ("observed",))
        if wrong is not None:
            with pytest.raises(bl.errors.InvalidValue):
                self.opt.withdraw([wrong] if right is None else [right, wrong])

    @rule(data=st.data(), n=st.integers(1, 8))
    def observe_all(self, data, n):
        for number in [number for number, state in self.states.items() if state == "pending"][:n]:
            self.value(self.opt.trials[number], self.sign * f(self.opt, self.opt.trials[number]))

    @rule(data=st.data())
    def fail(self, data):
        trial = self.drawn(data, ("pending",))
        if trial is not None:
            trial.fail()
            self.states[trial.number] = "failed"
            self.given_up.clear()

    @rule(data=st.data())
    def abandon(self, data):
        trial = self.drawn(data, ("pending",))
        if trial is not None:
            trial.abandon()
            self.states[trial.number] = "abandoned"
            self.given_up.append(place(trial))

    @rule(data=st.data(), factor=st.sampled_from([-1e8, -1e4, 1e3, 1e6]))
    def mistype(self, data, factor):
        trial = self.drawn(data, ("observed",))
        if trial is not None:
            self.value(trial, factor * (1 + abs(f(self.opt, trial))), amend=True)
            self.mistyped.add(trial.number)

    @precondition(lambda self: getattr(self, "mistyped", None))
    @rule()
    def correct(self):
        for number in sorted(self.mistyped):
            self.value(self.opt.trials[number], self.sign * f(self.opt, self.opt.trials[number]), amend=True)
        self.mistyped.clear()

    @rule(data=st.data(), value=st.sampled_from([-1e8, -1e3, 0.0, 1e3, 1e6, 1e300, -5e-324]))
    def outlier(self, data, value):
        if self.kind == "bpe":
            return  # only suggested points are used for eliminations
        trial = self.opt.trials[data.draw(st.integers(0, len(self.states) - 1))] if self.states else self.opt.suggest()
        self.states.setdefault(trial.number, "pending")
        point = trial.params if trial.index is None else trial.index
        added = self.opt.add(point, value, std=self.std)
        self.states[added.number], self.values[added.number] = "observed", value
        self.given_up.clear()

    @rule()
    def look(self):
        if self.opt.best_trial_ is None:
            return
        found = self.opt.recommend()
        assert found is not None
        if self.opt._optimizer._has_model:
            points = CANDIDATES[:3] if self.domain == "candidates" else [trial.params for trial in self.opt.trials[:3]]
            mean, std = self.opt.predict(points)
            assert np.isfinite(mean).all() and np.isfinite(std).all() and (np.asarray(std) >= 0).all()

    # The laws.

    def drawn(self, data, states):
        numbers = [number for number, state in self.states.items() if state in states]
        return self.opt.trials[data.draw(st.sampled_from(numbers))] if numbers else None

    def value(self, trial, value, amend=False):
        if not amend and trial.number in self.values:
            return
        trial.observe(value, std=self.std, amend=amend)
        if self.states[trial.number] == "withdrawn" and (trial.number, value) in self.withdrawn and not amend:
            return  # the report repeats a withdrawn value
        # A repeated report of the same value does not change the trial.
        if self.states[trial.number] != "observed" or self.values[trial.number] != value:
            self.given_up.clear()
        self.states[trial.number], self.values[trial.number] = "observed", value

    def check_new(self, trial):
        assert trial.number == len(self.states) and trial.state == "pending"
        self.opt.domain.locate(trial.params if trial.index is None else trial.index)
        here = place(trial)
        if self.domain == "box":
            near = [p for p in self.given_up if max(abs(a - b) for a, b in zip(here, p, strict=True)) < 1e-3]
            assert not near, f"{here} was abandoned, and nothing has come since"
        if self.repeats_nothing():
            taken = {
                place(t) for t in self.opt.trials if t.state in ("observed", "pending") and t.number < trial.number
            }
            tried = taken | {place(t) for t in self.opt.trials if t.state == "failed"} | set(self.given_up)
            if self.domain == "box":
                assert here not in taken, f"{here} has its value, and values have no noise"
            elif len(tried) < 12:
                assert here not in taken, f"{here} comes again before others were tried"
        self.states[trial.number] = "pending"

    def repeats_nothing(self):
        """Whether this optimizer must not evaluate a point twice, because the second value would be the same. The
        algorithms from the literature may evaluate a point twice."""
        return self.std == 0.0 and self.kind in ("random", "log_ei", "ucb", "max_variance")

    @invariant()
    def trials_are_what_was_said(self):
        if not hasattr(self, "states"):
            return
        assert {t.number: t.state for t in self.opt.trials} == self.states
        assert {t.number: t.value for t in self.opt.trials if t.value is not None} == self.values
        assert [t.number for t in self.opt.pending] == [n for n, state in self.states.items() if state == "pending"]
        best = max((self.sign * value for value in self.values.values()), default=None)
        assert (self.opt.best_trial_ is None) == (best is None)
        assert best is None or self.sign * self.opt.best_value_ == best

    def teardown(self):
        """An optimizer that is made from the log accepts all notes and makes the same suggestions, bit for bit."""
        if not hasattr(self, "states"):
            return
        assert all(math.isfinite(t.suggested_at) for t in self.opt.trials)
        twins = [self.opt, replayed(self.opt), twin_of(self.opt)]
        for opt in twins:
            opt.suggest(n=2)
        assert len({core_of(opt).to_bytes() for opt in twins}) == 1


few = settings(
    max_examples=2000 if FULL else 15,
    stateful_step_count=40 if FULL else 20,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("kind", KINDS)
def test_laws_hold_under_random_use(kind):
    run_state_machine_as_test(type("RandomUse", (RandomUse,), {"kind": kind}), settings=few)

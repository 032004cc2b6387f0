"""Trials have the right states after reports in any order, in copies of an optimizer, and with several threads."""

import math
import pickle

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import belated as bl


class LifeCycle(RuleBasedStateMachine):
    """After reports in any order, every trial has the same state as in a dictionary that follows the rules."""

    def __init__(self):
        super().__init__()
        self.opt = bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize", seed=0)
        self.known = []

    def some(self, data, *states):
        numbers = [i for i, (state, _) in enumerate(self.known) if state in states]
        return data.draw(st.sampled_from(numbers))

    def any_in(self, *states):
        return any(state in states for state, _ in self.known)

    @rule(n=st.integers(1, 3))
    def suggest(self, n):
        assert [trial.number for trial in self.opt.suggest(n=n)] == list(range(len(self.known), len(self.known) + n))
        self.known += [("pending", None)] * n

    @rule(value=st.one_of(st.none(), st.floats(-5, 5)))
    def add(self, value):
        assert self.opt.add({"x": 0.5}, value).number == len(self.known)
        self.known.append(("pending" if value is None else "observed", value))

    @precondition(lambda self: self.any_in("pending", "failed", "abandoned"))
    @rule(data=st.data(), value=st.floats(-5, 5))
    def observe(self, data, value):
        number = self.some(data, "pending", "failed", "abandoned")
        self.opt.observe(number, value)
        self.known[number] = ("observed", value)

    @precondition(lambda self: self.any_in("observed"))
    @rule(data=st.data(), value=st.floats(-5, 5), amend=st.booleans())
    def observe_again(self, data, value, amend):
        number = self.some(data, "observed")
        if amend:
            self.opt.observe(number, value, amend=True)
            self.known[number] = ("observed", value)
        elif value == self.known[number][1]:
            self.opt.observe(number, value)
        else:
            with pytest.raises(bl.errors.AlreadyObserved):
                self.opt.observe(number, value)

    @precondition(lambda self: self.any_in("pending"))
    @rule(data=st.data(), method=st.sampled_from(["fail", "abandon"]))
    def give_up(self, data, method):
        number = self.some(data, "pending")
        getattr(self.opt, method)(number)
        self.known[number] = ({"fail": "failed", "abandon": "abandoned"}[method], None)

    @precondition(lambda self: self.any_in("pending"))
    @rule(data=st.data(), value=st.sampled_from([math.nan, math.inf, "1", None, [1.0]]))
    def observe_nonsense(self, data, value):
        with pytest.raises(bl.errors.InvalidValue):
            self.opt.observe(self.some(data, "pending"), value)

    @rule()
    def travel(self):
        self.opt = pickle.loads(pickle.dumps(self.opt))

    @invariant()
    def agree(self):
        assert [(trial.state, trial.value) for trial in self.opt.trials] == self.known
        assert [trial.number for trial in self.opt.pending] == [
            i for i, (state, _) in enumerate(self.known) if state == "pending"
        ]
        values = [value for _, value in self.known if value is not None]
        assert self.opt.best_value_ == (min(values) if values else None)


TestLifeCycle = LifeCycle.TestCase
TestLifeCycle.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)

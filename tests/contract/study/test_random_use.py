"""A study in SQLite under random use. The clocks and names are unusual, the file has several names, and calls are
interrupted.

The file contains exactly the events of acknowledged calls. After each step, another instance reads the file and checks
its events.
"""

import os
import sqlite3
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import belated as bl
from belated import cli
from tests.contract.optimizers.strategies import FULL, Clock, core_of

PACKAGE = Path(bl.__file__).parent
TIMES = [0.0, -0.0, 5.0, -5.0, 1e9, 5e-324, 1e308, -1e308]
NAMES = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12),
    st.sampled_from(["e\u0301", "\u00e9", "漢" * 1000, "a" * 4096, "%00", "🙂", "../x", "'; --"]),
)
OPTIMIZERS = {
    "random": lambda clock: bl.RandomSearch({"x": (0.0, 1.0)}, clock="seconds", time=clock, seed=0),
    "bayes": lambda clock: bl.BayesOpt(
        {"x": (0.0, 1.0)},
        clock="seconds",
        time=clock,
        seed=0,
        initial=2,
        surrogate=bl.GP(n_restarts=1, n_refit_restarts=1),
    ),
}


class Interrupted(Exception):
    """The exception that the tests raise in place of KeyboardInterrupt, which would stop pytest."""


def interrupted(call, after):
    """Interrupt a call at the given line of the store's or the study's code; return whether the call ended before it
    reached this line."""
    left = after

    def trace(frame, event, _argument):
        nonlocal left
        if not frame.f_code.co_filename.startswith((f"{PACKAGE}/store", f"{PACKAGE}/study")):
            return None
        # An exception cannot propagate out of a finalizer.
        if event == "line" and frame.f_code.co_name != "__del__":
            left -= 1
            if left == 0:
                raise Interrupted
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Interrupted:
        return False
    finally:
        sys.settrace(previous)
    return True


class RandomUse(RuleBasedStateMachine):
    """A study in a file, which is opened twice, and the trials of all acknowledged calls."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "studies.db")
        self.link = Path(self.folder.name, "link.db")
        self.clock, self.n_keys = Clock(), 0
        self.studies = []

    @initialize(name=NAMES, kind=st.sampled_from(sorted(OPTIMIZERS)), time=st.sampled_from(TIMES))
    def start(self, name, kind, time):
        self.clock.now, self.name = time, name
        try:
            self.studies = [bl.Study(name, self.path, OPTIMIZERS[kind](self.clock), time=self.clock)]
        except bl.InvalidSetting:
            assert abs(time) == 1e308 or len(name.encode()) > 2500
            self.clock.now, self.name = 0.0, "a plain name"
            self.studies = [bl.Study(self.name, self.path, OPTIMIZERS[kind](self.clock), time=self.clock)]
        self.link.symlink_to(self.path)
        self.studies.append(bl.Study.load(self.name, self.link, time=self.clock))
        # The expected state and value of each trial.
        self.expected = []

    @rule(time=st.sampled_from(TIMES))
    def wait(self, time):
        self.clock.now = time

    @rule(which=st.integers(0, 1), keyed=st.booleans())
    def suggest(self, which, keyed):
        self.call(which, lambda study: study.suggest(key=self.key() if keyed else None), ("pending", None))

    @rule(which=st.integers(0, 1), number=st.integers(0, 20), value=st.floats(allow_nan=False, allow_infinity=False))
    def observe(self, which, number, value):
        if number < len(self.expected) and self.expected[number][1] is None:
            self.call(which, lambda study: study.observe(number, value), ("observed", value), number)

    @rule(which=st.integers(0, 1), number=st.integers(0, 20), state=st.sampled_from(["failed", "abandoned"]))
    def end(self, which, number, state):
        if number < len(self.expected) and self.expected[number][0] == "pending":
            method = {"failed": "fail", "abandoned": "abandon"}[state]
            self.call(which, lambda study: getattr(study, method)(number), (state, None), number)

    @rule(which=st.integers(0, 1))
    def open_again(self, which):
        self.studies[which] = bl.Study.load(self.name, [self.path, self.link][which], time=self.clock)

    @rule(which=st.integers(0, 1), after=st.integers(1, 120))
    def interrupt(self, which, after):
        before = len(self.expected)
        try:
            done = interrupted(self.studies[which].suggest, after)
        except bl.BelatedError:
            done = False
        with sqlite3.connect(self.path, timeout=0, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")  # the file is not open in any process
            other.execute("ROLLBACK")
        other.close()
        n = bl.Study.load(self.name, self.path, time=self.clock).n_trials
        assert n == before + 1 if done else n in (before, before + 1)
        self.expected += [("pending", None)] * (n - before)

    @rule(which=st.integers(0, 1))
    def second_name(self, which):
        """While a file has two names, writing is refused, because the file would have two write-ahead logs."""
        other = Path(self.folder.name, "other.db")
        os.link(self.path, other)
        try:
            with pytest.raises(bl.StoreError):
                bl.Study.load(self.name, other, time=self.clock).suggest()
        finally:
            other.unlink()
            for leftover in Path(self.folder.name).glob("other.db-*"):
                leftover.unlink()

    def key(self):
        self.n_keys += 1
        return f"鍵 {self.n_keys}"

    def call(self, which, action, outcome, number=None):
        """Make a call. The call must be acknowledged, or raise an error about the clock and leave the study
        unchanged."""
        try:
            action(self.studies[which])
        except bl.BelatedError:
            assert abs(self.clock.now) >= 1e308
            return
        if number is None:
            self.expected.append(outcome)
        else:
            self.expected[number] = outcome

    @invariant()
    def acknowledged_is_stored(self):
        if not self.studies:
            return
        reader = bl.Study.load(self.name, self.path, time=self.clock)
        for study in (reader, *self.studies):
            study.sync()
            assert [(t.state, t.value) for t in study.trials] == self.expected
        assert len({core_of(study).to_bytes() for study in (reader, *self.studies)}) == 1

    def teardown(self):
        if self.studies:
            assert cli.main(["study", "check", str(self.path)]) == cli.DONE
            events = core_of(self.studies[0]).events(0)
            exported = Path(self.folder.name, "exported.jsonl")
            with exported.open("w", encoding="utf-8") as file:
                stdout, sys.stdout = sys.stdout, file
                try:
                    assert cli.main(["study", "export", str(self.path)]) == cli.DONE
                finally:
                    sys.stdout = stdout
            copy = Path(self.folder.name, "copy.db")
            assert cli.main(["study", "import", str(exported), str(copy)]) == cli.DONE
            assert core_of(bl.Study.load(self.name, copy, time=self.clock)).events(0) == events
        self.studies.clear()
        self.folder.cleanup()


def test_acknowledged_calls_are_stored_under_random_use(capsys):
    run_state_machine_as_test(
        RandomUse,
        settings=settings(
            max_examples=2000 if FULL else 40,
            stateful_step_count=20,
            database=None,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )

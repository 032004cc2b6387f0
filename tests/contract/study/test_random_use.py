"""A study in SQLite and in PostgreSQL under random use. The clocks, names and attributes are unusual, the file has
several names, the space is revised, calls are interrupted, connections are lost, processes fork, and the study is
copied, deleted and created again.

The store contains exactly the events of acknowledged calls. After each step, another instance reads the store and
checks its events. Handles of a deleted study never read or write a new study of the same name.
"""

import json
import os
import pickle
import sqlite3
import sys
import tempfile
import threading
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path

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


# Attributes, and the JSON data that are stored for them. The first attributes are JSON data already.
ATTRS = [
    ({}, {}),
    ({"a": 1, "漢": [None, {"b": -0.0}]}, {"a": 1, "漢": [None, {"b": -0.0}]}),
    ({"a": 10**30}, {"a": 10**30}),
    ({"a": float("nan"), "b": [float("inf")]}, {"a": None, "b": [None]}),
    ({1: {2: 3}}, {"1": {"2": 3}}),
    ({"a": {1}, "b": np.arange(2)}, {"a": "{1}", "b": [0, 1]}),
    ({"a": datetime(2026, 1, 2), "\ud800": b"x"}, {"a": "2026-01-02 00:00:00", "\\ud800": "b'x'"}),
    (3, {}),
]
N_JSON = 3


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


def in_a_fork(call):
    """Make a call in a forked process; return whether it succeeded."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            call()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


class RandomUse(RuleBasedStateMachine):
    """A study that is opened twice, and the trials and attributes of all acknowledged calls."""

    #: A PostgreSQL server, or None for a file with a symbolic link.
    server = None

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "studies.db")
        self.link = Path(self.folder.name, "link.db")
        if self.server is not None:
            self.server.empty()
            self.path = self.link = self.server.url()
        self.clock, self.n_keys, self.n_copies = Clock(), 0, 0
        # The handles of the study, and handles of deleted studies of the same name.
        self.studies, self.deleted = [], []

    @initialize(name=NAMES, kind=st.sampled_from(sorted(OPTIMIZERS)), time=st.sampled_from(TIMES))
    def start(self, name, kind, time):
        self.clock.now, self.name = time, name
        try:
            self.studies = [bl.Study(name, self.path, OPTIMIZERS[kind](self.clock), time=self.clock)]
        except bl.errors.InvalidSetting:
            assert abs(time) == 1e308 or len(name.encode()) > 2500
            self.clock.now, self.name = 0.0, "a plain name"
            self.studies = [bl.Study(self.name, self.path, OPTIMIZERS[kind](self.clock), time=self.clock)]
        if self.server is None:
            self.link.symlink_to(self.path)
        self.studies.append(bl.Study.load(self.name, self.link, time=self.clock))
        # The expected state, value and attributes of each trial, and the expected attributes of the study.
        self.expected, self.attrs = [], {}
        # The withdrawn values, as (number, value).
        self.withdrawn = set()

    @rule(time=st.sampled_from(TIMES))
    def wait(self, time):
        self.clock.now = time

    @rule(which=st.integers(0, 1), keyed=st.booleans())
    def suggest(self, which, keyed):
        self.call(which, lambda study: study.suggest(key=self.key() if keyed else None), ("pending", None, {}))

    @rule(
        which=st.integers(0, 1),
        number=st.integers(0, 20),
        value=st.floats(allow_nan=False, allow_infinity=False),
        attrs=st.sampled_from(ATTRS),
    )
    def observe(self, which, number, value, attrs):
        """A value is stored even if its attributes are invalid."""
        if number < len(self.expected) and self.expected[number][1] is None:
            given, stored = attrs
            outcome = ("observed", value, self.expected[number][2] | stored)
            if self.expected[number][0] == "withdrawn" and (number, value) in self.withdrawn:
                outcome = self.expected[number]  # the report repeats a withdrawn value
            self.call(which, lambda study: study.observe(number, value, attrs=given), outcome, number)

    @rule(which=st.integers(0, 1), numbers=st.lists(st.integers(0, 20), min_size=1, max_size=3))
    def withdraw(self, which, numbers):
        """Either all results of a list are withdrawn, or none of them."""
        known = [number for number in numbers if number < len(self.expected)]
        if any(self.expected[number][0] not in ("observed", "failed") for number in known) or known != numbers:
            with pytest.raises(bl.BelatedError):
                self.studies[which].withdraw(numbers, reason="漢")
        elif abs(self.clock.now) < 1e308:
            self.studies[which].withdraw(numbers, reason="漢")
            for number in set(numbers):
                _, value, attrs = self.expected[number]
                self.withdrawn |= {(number, value)}
                self.expected[number] = ("withdrawn", None, attrs)

    @rule(which=st.integers(0, 1), number=st.integers(0, 20), attrs=st.none() | st.sampled_from(ATTRS))
    def end(self, which, number, attrs):
        """Abandon a trial, or report a failure with attributes."""
        if number < len(self.expected) and self.expected[number][0] == "pending":
            if attrs is None:
                self.call(which, lambda study: study.abandon(number), ("abandoned", None, {}), number)
            else:
                given, stored = attrs
                self.call(which, lambda study: study.fail(number, attrs=given), ("failed", None, stored), number)

    @rule(which=st.integers(0, 1), i=st.integers(0, len(ATTRS) - 1))
    def set_attrs(self, which, i):
        given, stored = ATTRS[i]
        if i < N_JSON:
            self.studies[which].set_attrs(given)
            self.attrs |= stored
        else:
            with pytest.raises(bl.errors.InvalidValue, match="nothing was changed"):
                self.studies[which].set_attrs(given)

    @rule(which=st.integers(0, 1), reads=st.booleans(), kind=st.sampled_from(sorted(OPTIMIZERS)))
    def delete_and_create_again(self, which, reads, kind):
        """Delete the study, and give its name to another study."""
        if abs(self.clock.now) == 1e308:
            self.clock.now = 0.0
        pickled = pickle.dumps(self.studies[which])
        bl.Study.delete(self.name, [self.path, self.link][which])
        assert self.name not in [each.name for each in bl.Study.list(self.path)]
        self.deleted = (self.deleted + self.studies)[-4:]
        new = bl.Study(self.name, self.path, OPTIMIZERS[kind](self.clock), time=self.clock)
        self.studies = [new, bl.Study.load(self.name, self.link, time=self.clock)]
        self.expected, self.attrs = [], {}
        self.withdrawn.clear()
        with pytest.raises(bl.errors.StoreError, match="was deleted"):
            pickle.loads(pickled)
        self.use_deleted(which, reads)

    @rule(which=st.integers(0, 3), reads=st.booleans())
    def use_deleted(self, which, reads):
        """A handle of a deleted study raises errors and changes nothing."""
        if self.deleted:
            old = self.deleted[which % len(self.deleted)]
            calls = [lambda: old.attrs, lambda: old.trials_dataframe(), old.sync]
            if not reads:
                calls = [old.suggest, lambda: old.add({"x": 0.5}, 1.0), lambda: old.set_attrs({"a": 1})]
                calls += [lambda: old.copy("copy of a deleted study")]
            for call in calls:
                with pytest.raises((bl.errors.StoreError, bl.errors.InvalidSetting)):
                    call()

    @rule(which=st.integers(0, 1), after=st.none() | st.integers(1, 400))
    def copy(self, which, after):
        """A copy has all finished trials and the attributes, or does not exist if it was interrupted."""
        self.n_copies += 1
        name, study = f"copy {self.n_copies}", self.studies[which]
        try:
            done = interrupted(lambda: study.copy(name), 10**9 if after is None else after)
        except bl.BelatedError:
            assert abs(self.clock.now) == 1e308
            done = False
        if name in [each.name for each in bl.Study.list(self.path)]:
            copy = bl.Study.load(name, self.path, time=self.clock)
            left_out = study.left_out
            finished = [each for i, each in enumerate(self.expected) if each[0] != "pending" and i not in left_out]
            assert facts(copy) == finished and copy.attrs == self.attrs
            bl.Study.delete(name, self.path)
        else:
            assert not done

    @rule(which=st.integers(0, 1), high=st.sampled_from([0.5, 1.0, 2.0]), after=st.none() | st.integers(1, 400))
    def revise(self, which, high, after):
        """A revision, perhaps interrupted, keeps all trials."""
        try:
            interrupted(lambda: self.studies[which].revise(space={"x": (0.0, high)}), 10**9 if after is None else after)
        except bl.BelatedError:
            assert abs(self.clock.now) == 1e308

    @rule(which=st.integers(0, 1))
    def lose_connection(self, which):
        """The connection is lost, perhaps without the knowledge of the client."""
        if self.server is not None:
            self.server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type "
                "= 'client backend'"
            )
        else:
            self.studies[which]._store._disconnect()

    @rule(which=st.integers(0, 1), held=st.booleans())
    def fork(self, which, held):
        """A forked process uses the handle, perhaps while another thread of its parent uses it."""
        study = self.studies[which]
        done = []
        holder = threading.Thread(target=lambda: done.append(in_a_fork(lambda: study.add({"x": 0.5}, 0.25))))
        with study._log.lock if held else nullcontext():
            holder.start()
            holder.join()
        if done == [True]:
            self.expected.append(("observed", 0.25, {}))
        else:
            assert abs(self.clock.now) == 1e308

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
        if self.server is None:
            with sqlite3.connect(self.path, timeout=0, isolation_level=None) as other:
                other.execute("BEGIN IMMEDIATE")  # no process holds the lock
                other.execute("ROLLBACK")
            other.close()
        n = bl.Study.load(self.name, self.path, time=self.clock).n_trials
        assert n == before + 1 if done else n in (before, before + 1)
        self.expected += [("pending", None, {})] * (n - before)

    @precondition(lambda self: self.server is None)
    @rule(which=st.integers(0, 1))
    def second_name(self, which):
        """While a file has two names, writing is refused, because the file would have two write-ahead logs."""
        other = Path(self.folder.name, "other.db")
        os.link(self.path, other)
        try:
            with pytest.raises(bl.errors.StoreError):
                bl.Study.load(self.name, other, time=self.clock).suggest()
        finally:
            other.unlink()
            for leftover in Path(self.folder.name).glob("other.db-*"):
                leftover.unlink()

    def key(self):
        self.n_keys += 1
        return f"鍵 {self.n_keys}"

    def call(self, which, action, outcome, number=None):
        """Make a call. The call must succeed, or raise an error about the clock and leave the study unchanged."""
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
            assert facts(study) == self.expected and study.attrs == self.attrs
        assert len({content(study) for study in (reader, *self.studies)}) == 1

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
            copy = Path(self.folder.name, "exported.db")
            assert cli.main(["study", "import", str(exported), str(copy)]) == cli.DONE
            assert core_of(bl.Study.load(self.name, copy, time=self.clock)).events(0) == events
        self.studies.clear()
        self.deleted.clear()
        self.folder.cleanup()


def facts(study):
    """Return the state, the value and the attributes of each trial."""
    return [(trial.state, trial.value, trial.attrs) for trial in study.trials]


def content(study):
    """Return the events of a study, and what revisions change."""
    points = [(trial.params, trial.left_out) for trial in study.trials]
    return json.dumps([core_of(study).events(0), points, repr(study.domain)])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore::belated.BelatedWarning", "ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize(("kind", "n"), [("sqlite", 40), ("postgresql", 15)])
def test_acknowledged_calls_are_stored_under_random_use(capsys, request, kind, n):
    server = None if kind == "sqlite" else request.getfixturevalue("postgres_server")
    run_state_machine_as_test(
        type("RandomUse", (RandomUse,), {"server": server}),
        settings=settings(
            max_examples=50 * n if FULL else n,
            stateful_step_count=20,
            database=None,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )

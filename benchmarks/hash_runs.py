"""Short runs for `hashes.py` with outcomes, revisions, withdrawals, given points, constraints, tables and contexts.

Each run is a `Scenario` of the tables below. After every event of a run, a copy that is read from the store (of an
optimizer: a copy that is unpickled) must have the same trials, queue of pending trials and best trial. At every fourth
turn the recommendation, the predictions and the next suggestion of the copy must be equal, too, bit for bit.

The ends of the names say which runs may change with a rule for a special case: "touched bound", "failures", "several
contexts", "far row", "linear constraint", "shared".
"""

import contextlib
import hashlib
import itertools
import math
import os
import pickle
import random
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import belated as bl
from belated.space import NamedCandidates

CONTINUOUS = {"x": (-1.0, 2.0), "y": bl.Real(1e-3, 10.0, log=True)}
MIXED = {
    "x": (-1.0, 2.0),
    "n": (1, 9),
    "size": bl.Ordinal([16, 32, 64]),
    "c": ["a", "b", "d"],
    "z": bl.Real(0.0, 1.0, when={"c": ["a", "b"]}),
}
CANDIDATES = np.random.default_rng(3).random((60, 2))
MEMORY = "/dev/shm"  # a file system in memory, where fsync takes almost no time


class Digest:
    """Collects numbers and text, and returns the hash of all of them."""

    def __init__(self):
        self.hash = hashlib.sha256()

    def add(self, *items):
        for item in items:
            if isinstance(item, dict):
                self.add(*item.keys(), *item.values())
            elif isinstance(item, (float, np.ndarray, np.floating)):
                self.hash.update(np.asarray(item, dtype=np.float64).tobytes())
            elif isinstance(item, (list, tuple)):
                self.add(*item)
            else:
                self.hash.update(repr(item).encode())


# What is measured.

BOX = {"x": (-1.0, 2.0), "y": (0.0, 1.0)}
LEVELS = {"x": (-1.0, 2.0), "n": (1, 6), "c": ["a", "b", "d"]}


def features(params, context=None):
    """Return numbers of moderate size for the params and the context, for any names."""
    values = params.values() if isinstance(params, dict) else np.atleast_1d(params)
    shift = sum(number_of(each, 0.02) for each in (context or {}).values())
    return [math.tanh(number_of(each) / 3.0) - 0.3 - shift for each in values]


def number_of(value, unit=1.0):
    """Return a number times the unit, or a number between 0 and 2 for a text."""
    return sum(value.encode()) % 5 / 2.0 if isinstance(value, str) else unit * float(value)


def height(params, context=None):
    """A smooth function with one maximum."""
    return -sum(each**2 for each in features(params, context))


def slope(params, context=None):
    """A smooth function without a maximum inside of the space."""
    return sum(math.sin(0.9 * each + 0.1 * i) for i, each in enumerate(features(params, context)))


def one(params, context=None):
    return {"yield": height(params, context)}


def two(params, context=None):
    return one(params, context) | {"impurity": slope(params, context)}


def four(params, context=None):
    u = features(params, context)
    facts = {"purity": 1.0 - 0.2 * sum(each**2 for each in u) + 0.1 * u[0], "colour": sum(u)}
    return two(params, context) | facts


def clipped(params, context=None):
    return one(params, context) | {"impurity": max(0.0, slope(params, context))}


def counted(params, context=None):
    return one(params, context) | {"impurity": float(max(0, round(4.0 * slope(params, context))))}


def flagged(params, context=None):
    return one(params, context) | {"impurity": float(slope(params, context) > 0.2)}


def saturated(params, context=None):
    return one(params, context) | {"purity": min(1.0, 1.2 - 0.5 * slope(params, context))}


YIELD = {"yield": "maximize"}
TWO = YIELD | {"impurity": bl.AtMost(-0.1)}
LOOSE = YIELD | {"impurity": bl.AtMost(2.5)}
FOUR = TWO | {"purity": bl.AtLeast(0.6), "colour": bl.Record()}


# One run.


@dataclass(frozen=True)
class Scenario:
    """A run: the optimizer, what is measured, and what happens.

    `reports` are the reports of the turns, in a cycle; see `Run.report`. `at` has the calls before the suggestion of a
    turn: functions of the handle. `arguments` are the arguments of the suggestions, in a cycle.
    """

    make: Callable[[], Any]
    f: Callable[..., Any] = height
    reports: tuple[str, ...] = ("value",)
    at: Mapping[int, Callable[[Any], Any]] = field(default_factory=dict)
    arguments: tuple[Mapping[str, Any], ...] = ({},)
    turns: int = 20
    waiting: int = 2
    handles: int = 0  # 0: an optimizer without a store; 1 or 2: a study with this number of handles
    unpickle_every: int = 0  # continue with a copy after this number of turns; 0: never


class Run:
    """Makes the run of a scenario, and compares the live object with a copy after every event."""

    def __init__(self, scenario, folder):
        self.scenario, self.path = scenario, Path(folder) / "s.db"
        self.copies = (Path(folder) / f"copy{i}.db" for i in itertools.count())
        self.rng, self.digest, self.pending = random.Random(7), Digest(), []
        optimizer = scenario.make()
        self.functions = [each for each in optimizer.constraints or () if callable(each)]
        if scenario.handles == 0:
            self.handles = [optimizer]
        else:
            self.handles = [bl.Study("s", f"sqlite:///{self.path}", optimizer)]
            self.handles += [self.loaded(self.path) for _ in range(scenario.handles - 1)]

    def loaded(self, path):
        return bl.Study.load("s", f"sqlite:///{path}", constraints=self.functions or None)

    def copy(self, handle):
        """Return a copy of a handle with nothing that the handle has computed. Calls of the copy do not affect it."""
        if self.scenario.handles == 0:
            return pickle.loads(pickle.dumps(handle))
        path = next(self.copies)
        with contextlib.closing(sqlite3.connect(self.path)) as source, contextlib.closing(sqlite3.connect(path)) as to:
            source.backup(to)
        return self.loaded(path)

    def call(self, method, *arguments, **named):
        """Call a method of one of the handles, and compare the handle with a copy."""
        handle = self.handles[self.rng.randrange(len(self.handles))]
        found = getattr(handle, method)(*arguments, **named)
        self.compare(handle)
        return found

    def compare(self, handle):
        self.equal(state(handle), state(self.copy(handle)), "the trials")

    def equal(self, live, copied, what):
        if repr(live) != repr(copied):
            raise AssertionError(f"{what} of the live object and of a copy differ: {live} and {copied}")

    def __call__(self):
        scenario = self.scenario
        for turn in range(scenario.turns):
            if turn in scenario.at:
                scenario.at[turn](self.handles[turn % len(self.handles)])
                self.compare(self.handles[0])
            arguments = scenario.arguments[turn % len(scenario.arguments)]
            expected = self.expected(arguments) if turn % 4 == 3 else None
            found = self.call("suggest", **arguments)
            if expected is not None:
                self.equal(points(found), expected, "the suggestions")
            for trial in found if isinstance(found, list) else [found]:
                self.digest.add(trial.number, trial.params)
                self.pending.append(trial.number)
            while len(self.pending) > scenario.waiting:
                number = self.pending.pop(self.rng.randrange(len(self.pending)))
                self.report(scenario.reports[turn % len(scenario.reports)], number)
            if scenario.unpickle_every and turn % scenario.unpickle_every == scenario.unpickle_every - 1:
                load = self.copy if scenario.handles == 0 else lambda _: self.loaded(self.path)
                self.handles = [load(each) for each in self.handles]
        last = self.handles[-1]
        self.equal(estimates(last, self.context()), estimates(self.copy(last), self.context()), "the estimates")
        self.digest.add(state(last), estimates(last, self.context()))
        return self.digest.hash.hexdigest()[:16]

    def context(self):
        first = self.scenario.arguments[0]
        return {"context": first["context"]} if "context" in first else {}

    def expected(self, arguments):
        """Compare the estimates of a handle and a copy, and return the next suggestion of the copy."""
        copied = self.copy(self.handles[0])
        self.equal(estimates(self.handles[0], self.context()), estimates(copied, self.context()), "the estimates")
        return points(copied.suggest(**arguments))

    def report(self, kind, number):
        """Report the result of a trial.

        "partial" is one value now and the others later, "elsewhere" a value at another point, "revive" a value after
        `abandon`, "restore" another value after `withdraw`, and "one" means one outcome.
        """
        trial = self.handles[0].trial(number)
        if trial.left_out is not None:
            return self.call("abandon", number) if trial.state == "pending" else None
        values = self.scenario.f(trial.params, trial.context)
        missing, method, _, of_one = list(trial.missing), *kind.partition(" ")
        first = isinstance(values, dict) and len(missing) == len(values) > 1  # no outcome is known yet
        if kind == "partial" and first:
            self.pending.append(number)
            name = missing[number % len(missing)]
            return self.call("observe", number, {name: values[name]})
        if of_one and method != "withdraw" and len(missing) > 1:
            self.call(method, number, outcome=missing.pop())
        elif method in ("fail", "abandon", "revive"):
            self.call(method.replace("revive", "abandon"), number)
            if method != "revive":
                return None
        if kind == "elsewhere" and not trial.values:
            moved = trial.params | {"x": 0.9 * trial.params["x"]}
            return self.call("observe", number, self.scenario.f(moved, trial.context), params=moved)
        known = moved_by(values, missing, 0.0)
        self.call("observe", number, known, **({"std": 0.1} if kind == "std" else {}))
        if kind in ("amend", "replicate"):
            self.call("observe", number, moved_by(values, list(trial.values), 0.01), **{kind: True})
        elif kind in ("withdraw", "restore"):
            self.call("withdraw", number, reason="leak")
            if kind == "restore":
                self.call("observe", number, moved_by(values, missing, 0.02))
        elif kind == "withdraw one":
            self.call("withdraw", number, outcome=list(trial.values)[-1])
        return None


def moved_by(values, names, amount):
    """Return a value, or the values of some outcomes, plus a number."""
    return {name: values[name] + amount for name in names} if isinstance(values, dict) else values + amount


def points(trials):
    return [(each.number, each.params) for each in (trials if isinstance(trials, list) else [trials])]


def state(handle):
    """Return all data of the trials except for times, and the best trial."""
    best = handle.best_trial_
    return [fact(each) for each in handle.trials] + [
        [each.number for each in handle.pending],
        None if best is None else [best.number, handle.best_value_, handle.best_params_],
    ]


def fact(trial):
    """Return the data of a trial."""
    outcomes = {name: [each.state, each.value, each.std] for name, each in trial.outcomes.items()}
    withdrawn = None if trial.withdrawal is None else trial.withdrawal.reason
    run = [trial.index, trial.index_run, trial.params_run, trial.outside, trial.left_out and "left out"]
    return [trial.number, trial.params, *run, trial.context, trial.state, trial.value, trial.std, outcomes, withdrawn]


def estimates(handle, at):
    """Return the recommendation and the predictions, if there are any."""
    try:
        recommended = handle.recommend(**at)
    except bl.errors.NotFitted:
        return None
    found = [recommended]
    names = list(getattr(handle, "optimizer", handle).outcomes or {}) or [None]
    for name in names:
        with contextlib.suppress(bl.BelatedError):  # only BayesOpt has a model, and only of outcomes with values
            found += [float(each) for each in handle.predict(recommended, outcome=name, **at)]
    with contextlib.suppress(bl.BelatedError):
        found.append(float(handle.predict_feasible(recommended, **at)))
    delays = handle.delays_
    return [*found, delays.n_arrived, delays.n_failed, delays.n_abandoned]


# The tables of scenarios.


def bayes(space=None, **arguments):
    """Return a function that makes a `BayesOpt`."""
    return lambda: bl.BayesOpt(space, seed=2, **arguments)


def random_search(space=None, **arguments):
    return lambda: bl.RandomSearch(space, seed=2, **arguments)


def tree(space=None, **arguments):
    return lambda: bl.TreeSearch(space, seed=2, **arguments)


def add(*arguments, **named):
    """Return a call for `Scenario.at`."""
    return lambda handle: handle.add(*arguments, **named)


def enqueue(*arguments):
    return lambda handle: handle.enqueue(*arguments)


def revise(**arguments):
    return lambda handle: handle.revise(**arguments)


def complete(handle):
    """Report all outcomes that are missing in trials with a value."""
    for trial in handle.pending:
        if trial.values:
            handle.observe(trial, moved_by(two(trial.params), trial.missing, 0.0))


def stays_below(params):
    return params["x"] + params["y"] <= 2.3


def scenarios():
    """Yield (name, scenario) of every run."""
    for table in (
        outcomes,
        goals,
        given_points,
        fixed_values,
        linear_constraints,
        tables,
        contexts,
        copies,
        revisions,
        revisions_of_outcomes,
        touched_bounds,
    ):
        yield from table().items()


def outcomes():
    """Runs with one, two and four outcomes."""
    reports = {
        "complete": ("value",),
        "partial": ("partial", "value"),
        "amended": ("value", "partial", "amend"),
        "abandoned": ("value", "partial", "abandon one", "abandon", "revive"),
        "withdrawn": ("value", "partial", "withdraw", "restore", "withdraw one"),
        "failures": ("value", "partial", "value", "fail", "value", "fail one"),
    }
    found = {}
    for number, f, goals_, space in (("one", one, YIELD, LEVELS), ("two", two, TWO, BOX), ("four", four, FOUR, BOX)):
        for name, each in reports.items():
            if number != "one" or name not in ("partial", "complete"):
                end = name if name != "failures" else "with failures"
                found[f"outcomes {number} {end}"] = Scenario(bayes(space, outcomes=goals_), f, each)
    late = Scenario(bayes(LEVELS, outcomes=TWO), two, ("partial",), waiting=7)
    return found | {
        "outcomes two late": late,
        "outcomes four late": replace(late, make=bayes(BOX, outcomes=FOUR), f=four),
        "outcomes two elsewhere": replace(late, reports=("value", "elsewhere"), waiting=2),
        "outcomes two std": replace(late, reports=("std", "value"), waiting=2),
        "outcomes one replicated": Scenario(bayes(BOX, outcomes=YIELD), one, ("value", "replicate")),
        "no outcomes": Scenario(bayes(LEVELS), height, ("value", "amend", "withdraw", "replicate", "restore")),
        "outcomes two RandomSearch": Scenario(random_search(LEVELS, outcomes=LOOSE), two, reports["withdrawn"]),
        "outcomes four RandomSearch with failures": Scenario(
            random_search(BOX, outcomes=FOUR), four, reports["failures"], handles=2
        ),
        "no outcomes TreeSearch": Scenario(tree(BOX), height, ("value", "amend", "withdraw", "abandon")),
    }


def goals():
    """Runs with other goals of the outcomes, and other acquisitions."""
    base = Scenario(bayes(BOX, outcomes=TWO), two, ("partial", "value"))
    bounded = {"yield": bl.Maximize(at_least=-3.0), "impurity": bl.Record()}
    return {
        f"goals {name}": replace(base, make=bayes(BOX, **arguments))
        for name, arguments in {
            "ucb": {"outcomes": YIELD | {"impurity": bl.Record()}, "acquisition": "ucb"},
            "thompson": {"outcomes": YIELD | {"impurity": bl.Record()}, "acquisition": "thompson"},
            "minimize": {"outcomes": {"yield": bl.AtLeast(-3.0), "impurity": "minimize"}},
            "between": {"outcomes": YIELD | {"impurity": bl.Between(-1.5, -0.1)}},
            "bounded objective": {"outcomes": bounded},
            "fast": {"outcomes": TWO, "surrogate": bl.GP(refit_every=3), "initial": 3},
        }.items()
    }


def given_points():
    """Runs with added and enqueued points, given whole and in part."""
    rows = [{"x": -0.5, "y": 0.2}, {"x": 0.5, "y": 0.7}, {"x": 1.5, "y": 0.9}]
    part = [{"x": 0.3}, {"y": 0.9}, {}]
    known = [height(row) for row in rows]
    base = Scenario(bayes(BOX), height)
    levels = [{"c": "b"}, {"n": 3, "c": "d"}, {"x": 1.0}]
    return {
        "given added": replace(base, at={0: add(rows, known)}),
        "given added later": replace(base, at={6: add(rows, known), 9: add({"x": 0.1, "y": 0.1})}),
        "given enqueued": replace(base, at={0: enqueue(rows), 9: enqueue([{"x": 0.9, "y": 0.4}])}),
        "given enqueued in part": replace(base, at={0: enqueue(part), 9: enqueue(part)}),
        "given enqueued in part mixed": replace(base, make=bayes(LEVELS), at={2: enqueue(levels), 8: enqueue(levels)}),
        "given enqueued rows of a table": replace(
            base, make=bayes(candidates=CANDIDATES), at={0: enqueue(CANDIDATES[[4, 9]]), 7: add([1, 2], [0.1, 0.2])}
        ),
        "given RandomSearch": replace(base, make=random_search(BOX), at={0: add(rows, known), 3: enqueue(part)}),
        "given TreeSearch": replace(base, make=tree(BOX), at={0: add(rows, known), 3: enqueue(part)}),
        "given outcomes": Scenario(
            bayes(BOX, outcomes=TWO),
            two,
            ("partial", "value"),
            at={0: add(rows, [two(row) for row in rows]), 5: add(rows[0], one(rows[0])), 8: enqueue(part)},
        ),
        "given study": replace(base, at={1: enqueue(part), 6: add(rows, known)}, handles=2, reports=("value", "amend")),
    }


def fixed_values():
    """Runs with `fixed` and `shared` values."""
    base = Scenario(bayes(LEVELS), height)
    rows = {"solvent": ["water", "DMF", "MeCN"] * 8, "T": [float(20 + 3 * i) for i in range(24)]}
    return {
        "fixed value": replace(base, arguments=({}, {"fixed": {"x": 0.5}})),
        "fixed list and range": replace(base, arguments=({"fixed": {"c": ["a", "d"], "x": (0.0, 1.0)}}, {})),
        "fixed column": replace(
            base, make=bayes(candidates=rows), arguments=({"fixed": {"solvent": "DMF"}}, {}, {}), turns=14
        ),
        "fixed outcomes": Scenario(bayes(BOX, outcomes=TWO), two, arguments=({"fixed": {"y": (0.2, 0.6)}}, {})),
        "fixed RandomSearch": replace(base, make=random_search(LEVELS), arguments=({"fixed": {"n": 3}}, {})),
        "fixed batch study": replace(base, arguments=({"n": 2, "fixed": {"n": [2, 3]}},), turns=8, handles=2),
        "shared": replace(base, make=bayes(BOX), arguments=({"n": 3, "shared": ["y"]},), turns=6),
        "RandomSearch shared": replace(
            base, make=random_search(LEVELS), arguments=({"n": 3, "shared": ["c"]},), turns=6
        ),
    }


def linear_constraints():
    parts = {name: (0.0, 1.0) for name in "abc"}
    base = Scenario(bayes(BOX, constraints=[bl.Linear({"x": 1.0, "y": 2.0}, at_most=2.0)]), height)
    mixture = [bl.Mixture(list(parts))]
    found = {
        "at most": base,
        "equals": replace(base, make=bayes(parts, constraints=[bl.Linear({"a": 1.0, "b": -1.0}, equals=0.2)])),
        "mixture": replace(base, make=bayes(parts, constraints=mixture)),
        "mixture with a step": replace(base, make=bayes(parts, constraints=[bl.Mixture(list(parts), step=0.1)])),
        "mixture RandomSearch": replace(base, make=random_search(parts, constraints=mixture)),
        "mixture fixed": replace(base, make=bayes(parts, constraints=mixture), arguments=({}, {"fixed": {"a": 0.3}})),
        "mixture outcomes": Scenario(bayes(parts, constraints=mixture, outcomes=TWO), two, ("partial", "value")),
        "mixture study": replace(
            base, make=bayes(parts, constraints=mixture), handles=2, at={5: enqueue([{"a": 0.5}])}
        ),
    }
    return {f"{name}, linear constraint": each for name, each in found.items()} | {
        "function as constraint, outcomes": Scenario(bayes(BOX, constraints=[stays_below], outcomes=TWO), two),
        "function as constraint, study": replace(base, make=bayes(BOX, constraints=[stays_below]), handles=2),
    }


def tables():
    """Runs with named candidates and with descriptors."""
    rng = np.random.default_rng(11)
    named = {
        "solvent": ["water", "DMF", "MeCN", "DMSO"] * 10,
        "T": rng.uniform(20.0, 80.0, 40).round(1).tolist(),
        "share": rng.random(40).round(3).tolist(),
    }
    gaps = named | {"salt": [None, "NaCl", "KBr", None] * 10, "share": [None, *named["share"][1:]]}
    described = named | {"logP": [0.5, 0.1, 1.6, 1.5] * 10, "pKa": [3.0, 3.2, 1.1, 1.3] * 10}
    far = np.vstack([CANDIDATES, [[1000.0, 0.5]]])
    choices = {"a": [0.1, 1.0], "b": [0.2, 1.5], "d": [2.0, 0.3], "e": [2.2, 0.1]}
    solvents = {"x": (0.0, 1.0), "c": bl.Categorical(list(choices), descriptors=list(choices.values()))}
    columns = {"solvent": ["logP", "pKa"]}
    base = Scenario(bayes(candidates=named), height)
    return {
        "table named": base,
        "table gaps": replace(base, make=bayes(candidates=gaps)),
        "table descriptors": replace(
            base, make=bayes(candidates=NamedCandidates(described, descriptors=columns)), turns=24
        ),
        "table outcomes": Scenario(bayes(candidates=named, outcomes=LOOSE), two, ("partial", "value", "withdraw")),
        "table RandomSearch": replace(base, make=random_search(candidates=gaps), handles=2),
        "table study": replace(base, handles=2, reports=("value", "amend")),
        "table far row": replace(base, make=bayes(candidates=far)),
        "descriptors": replace(base, make=bayes(solvents)),
        "descriptors outcomes": Scenario(bayes(solvents, outcomes=TWO), two, ("partial", "value"), handles=1),
    }


def contexts():
    age, site, both = {"age": (0.0, 50.0)}, {"site": ["p", "q"]}, {"age": (0.0, 50.0), "site": ["p", "q"]}
    ages = tuple({"context": {"age": each}} for each in (10.0, 22.0, 14.0))
    sites = tuple({"context": {"site": each}} for each in ("p", "p", "q"))
    pairs = tuple({"context": a["context"] | s["context"]} for a, s in zip(ages, sites, strict=True))
    rows = [{"x": 0.0, "y": 0.5}, {"x": 1.0, "y": 0.1}]
    base = Scenario(bayes(BOX, context=age), height, arguments=ages)
    alone = {
        "context continuous": replace(base, arguments=ages[:1]),
        "context categorical": replace(base, make=bayes(BOX, context=site), arguments=sites[:1]),
        "context outcomes": Scenario(bayes(BOX, context=both, outcomes=TWO), two, ("partial",), arguments=pairs[:1]),
        "context added": replace(base, arguments=ages[:1], at={0: add(rows, [0.1, 0.2], {"age": 10.0})}),
    }
    several = {
        "continuous": base,
        "categorical": replace(base, make=bayes(BOX, context=site), arguments=sites),
        "both": replace(base, make=bayes(LEVELS, context=both), arguments=pairs),
        "outcomes": Scenario(bayes(BOX, context=site, outcomes=TWO), two, ("partial", "value"), arguments=sites),
        "added": replace(base, at={0: add(rows, [0.1, 0.2], {"age": 30.0})}),
        "RandomSearch": replace(base, make=random_search(BOX, context=both), arguments=pairs),
        "study": replace(base, make=bayes(BOX, context=both), arguments=pairs, handles=2),
    }
    return alone | {f"context {name}, several contexts": each for name, each in several.items()}


def copies():
    """Runs that go on with copies."""
    base = Scenario(bayes(LEVELS), height, ("value", "amend"), unpickle_every=3)
    partial = Scenario(bayes(BOX, outcomes=FOUR), four, ("partial", "value"), unpickle_every=4)
    return {
        "copies BayesOpt": base,
        "copies RandomSearch": replace(base, make=random_search(LEVELS)),
        "copies TreeSearch": replace(base, make=tree(LEVELS), reports=("value",)),
        "copies outcomes": partial,
        "copies study": replace(base, handles=2),
        "copies study outcomes": replace(partial, handles=2),
        "copies of few fits": replace(base, make=bayes(BOX, surrogate=bl.GP(refit_every=4)), unpickle_every=5),
    }


def revisions():
    """Studies whose space or settings are revised."""
    wide, narrow = BOX | {"x": (-2.0, 3.0)}, BOX | {"x": (-0.5, 1.5)}
    more, names = BOX | {"k": (1, 9)}, {"a": "alpha", "b": "beta"}
    renamed, fewer = LEVELS | {"c": ["alpha", "beta", "d"]}, LEVELS | {"c": ["a", "b"]}
    table = {"solvent": ["water", "DMF", "MeCN"] * 8, "T": [float(20 + 3 * i) for i in range(24)]}
    moved = {name: column[6:] + column[:4] for name, column in table.items()}
    base = Scenario(bayes(BOX), height, handles=1)
    continuous = {
        "wider and narrower": {5: revise(space=wide), 10: revise(space=narrow)},
        "filled": {7: revise(space=more, fill={"k": 4})},
        "removed": {7: revise(space={"x": (-1.0, 2.0)}, keep={"y": 0.5})},
        "filled and removed": {5: revise(space=more, fill={"k": 4}), 10: revise(space=BOX, keep={"k": 4})},
        "reordered": {6: revise(space={"y": BOX["y"], "x": BOX["x"]})},
        "direction": {7: revise(direction="minimize"), 12: revise(direction="maximize")},
        "settings": {4: revise(surrogate__kernel="matern32"), 9: revise(acquisition="ucb")},
        "constrained": {4: revise(constraints=[bl.Linear({"x": 1.0}, at_most=1.7)])},
    }
    mixed = {
        "renamed": {7: revise(space=renamed, map={"c": names})},
        "swapped": {7: revise(space=LEVELS, map={"c": {"a": "b", "b": "a"}})},
        "choice removed": {6: revise(space=fewer), 11: revise(space=LEVELS)},
        "choice added": {6: revise(space=LEVELS | {"c": ["e", "a", "b", "d"]})},
    }
    found = {name: replace(base, at=at) for name, at in continuous.items()}
    found |= {name: replace(base, make=bayes(LEVELS), at=at) for name, at in mixed.items()}
    found |= {
        "of two handles": replace(base, at=continuous["filled and removed"], handles=2),
        "of two handles mixed": replace(
            base, make=bayes(LEVELS), at=mixed["renamed"] | mixed["choice removed"], handles=2
        ),
        "of a table": replace(base, make=bayes(candidates=table), at={6: revise(candidates=moved)}, turns=12),
        "of an array": replace(
            base, make=bayes(candidates=CANDIDATES), at={6: revise(candidates=CANDIDATES[10:])}, handles=2
        ),
        "RandomSearch": replace(base, make=random_search(LEVELS), at=mixed["renamed"], handles=2),
        "RandomSearch direction": replace(base, make=random_search(BOX), at=continuous["direction"]),
        "TreeSearch": replace(base, make=tree(BOX), at={7: revise(space=wide)}),
        "with failures": replace(base, at=continuous["filled"], reports=("value", "value", "fail")),
    }
    name = "constrained"
    found[f"{name}, linear constraint"] = found.pop(name)
    return {f"revision {name}": each for name, each in found.items()}


def revisions_of_outcomes():
    """Studies whose outcomes are revised."""
    turned = {"impurity": "minimize", "yield": bl.AtLeast(-3.0)}
    base = Scenario(bayes(BOX, outcomes=TWO), two, ("partial", "value"), handles=1)
    calls = {
        "bound": {6: revise(outcomes=TWO | {"impurity": bl.AtMost(0.2)})},
        "direction": {6: revise(outcomes=TWO | {"yield": "minimize"}), 10: revise(outcomes=TWO)},
        "objective": {8: revise(outcomes=turned)},
        "reordered": {7: revise(outcomes=dict(reversed(TWO.items())))},
        "recorded": {5: revise(outcomes=YIELD | {"impurity": bl.Record()}), 10: revise(outcomes=TWO)},
        "filled": {7: revise(space=BOX | {"k": (1, 9)}, fill={"k": 4})},
    }
    found = {name: replace(base, at=at) for name, at in calls.items()}
    found["of two handles"] = replace(base, at=calls["reordered"], handles=2)
    found["added"] = replace(
        base, make=bayes(BOX, outcomes=YIELD), at={8: revise(outcomes=TWO), 11: complete}, reports=("value",)
    )
    return {f"revision of outcomes {name}": each for name, each in found.items()}


def touched_bounds():
    bounded = TWO | {"impurity": bl.AtMost(0.0)}
    base = Scenario(bayes(BOX, outcomes=bounded), clipped, ("value", "partial"))
    found = {
        "clipped": base,
        "count": replace(base, f=counted, make=bayes(LEVELS, outcomes=TWO | {"impurity": bl.AtMost(1.0)})),
        "flag": replace(base, f=flagged, handles=1),
        "saturated": replace(base, f=saturated, make=bayes(BOX, outcomes=YIELD | {"purity": bl.AtLeast(1.0)})),
    }
    return {f"outcome {name}, touched bound": each for name, each in found.items()}


def checked_runs():
    """Yield (name, function that returns the hash) of each run."""
    for name, scenario in scenarios():
        yield name, lambda s=scenario: made(s)


def made(scenario):
    """Make the run of a scenario, and return its hash. The store is kept in memory if possible."""
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        return Run(scenario, folder)()

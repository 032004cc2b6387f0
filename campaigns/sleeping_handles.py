"""Check calls of handles that have not read the revisions of a study: python campaigns/sleeping_handles.py.

Each random history has two or three handles of one study. Some of them make no call while another handle revises the
problem up to three times. Their next call means what they had read: it is read in the problem of that revision, and
carried through the later revisions as earlier trials are. What is stored must equal a model, which keeps the trials as
plain data in the user's terms and shares no code with belated. Calls that cannot be carried must be refused with the
number of a revision, and must change nothing. Reports of several outcomes are stored for the outcomes that still exist,
with a warning that names the others. Calls of a server name the revision that the client knows.

For the first failures, the program looks for the shortest part of the history that still fails. It prints JSON.
"""

import contextlib
import copy
import random
import sys
import warnings
from collections import Counter

import harness

import belated as bl

STEPS = 9
LONGEST_SLEEP = 3  # revisions
TEXTS = "abcdefgh"
UNITS = {"x": (0.0, 1.0), "y": (0.0, 1.0), "t": (10.0, 90.0), "h": (0.0, 24.0), "n": (1, 9)}


class Impossible(Exception):
    """A call cannot be made in this state, so that a shortened history is not a history."""


# The problems, in the user's terms. A problem is a dict with a *space* (name → range or list of choices) or *rows* (a
# list of dicts; the names of the columns of an array are their numbers), *outcomes* (name → goal, or None), a
# *context* (as a space, or empty), and the highest *fidelity*, or None.


def domain_of(problem):
    """Return the arguments of an optimizer for a problem."""
    outcomes = problem["outcomes"]
    goals = {"maximize": "maximize", "record": bl.Record(), "bound": bl.AtMost(0.5)}
    found = {"curve": bl.Curve(STEPS) if has_curve(problem) else None}
    if outcomes is not None:
        found["outcomes"] = {name: goals[goal] for name, goal in outcomes.items()}
    found["fidelity"] = problem["fidelity"] and bl.Fidelity(1, problem["fidelity"])
    if problem["context"]:
        found["context"] = dict(problem["context"])
    if problem["rows"] is None:
        return found | {"space": dict(problem["space"])}
    return found | {"candidates": [list(row.values()) if 0 in row else dict(row) for row in problem["rows"]]}


def context_of(problem):
    """Return the context of a problem in the form of a problem."""
    return {"space": problem["context"], "rows": None}


def names_of(problem):
    return list(problem["space"]) if problem["rows"] is None else list(problem["rows"][0])


def choices_of(problem, name):
    """Return the choices of a parameter, or None for a number."""
    if problem["rows"] is None:
        return problem["space"][name] if isinstance(problem["space"][name], list) else None
    column = [row[name] for row in problem["rows"]]
    return list(dict.fromkeys(column)) if isinstance(column[0], str) else None


def contains(problem, params):
    """Return whether a point is within the bounds, or is a row."""
    if problem["rows"] is not None:
        return params in problem["rows"]
    ranges = {name: each for name, each in problem["space"].items() if isinstance(each, tuple)}
    return all(low <= params[name] <= high for name, (low, high) in ranges.items())


def is_measurable(problem, params):
    """Return whether a value can be observed at a point."""
    if set(params) != set(names_of(problem)):
        return False
    choices = {name: choices_of(problem, name) for name in params}
    return all(choices[name] is None or value in choices[name] for name, value in params.items())


def has_curve(problem):
    """Return whether trials have learning curves, which belong to an objective."""
    return problem["outcomes"] is None or "maximize" in problem["outcomes"].values()


def is_allowed(problem, name, held):
    """Return whether a parameter may be fixed to a value, a list of choices or a range."""
    choices = choices_of(problem, name)
    if choices is not None:
        return all(each in choices for each in (held if isinstance(held, list) else [held]))
    if problem["rows"] is not None:
        return True
    low, high = problem["space"][name]
    return all(low <= each <= high for each in (held if isinstance(held, tuple) else [held]))


def holds(held, value):
    """Return whether a value agrees with fixed values."""
    if isinstance(held, list):
        return value in held
    return held[0] <= value <= held[1] if isinstance(held, tuple) else value == held


# The model.


class Model:
    """What the study must hold."""

    def __init__(self, problem, handles):
        self.revisions = [{"problem": problem, "map": {}, "fill": {}, "keep": {}}]
        self.trials, self.queue = [], []
        self.known = [0] * handles  # the revision that each handle has read
        self.keys = {}  # (verb, key) → the call and its trials

    @property
    def problem(self):
        return self.revisions[-1]["problem"]

    @property
    def outcomes(self):
        """The names of the outcomes; a value without a name has the name None."""
        return [None] if self.problem["outcomes"] is None else list(self.problem["outcomes"])

    def carried(self, params, first, last=None, fills=True, part=lambda problem: problem):
        """Return values of a point of revision `first` in the problem of revision `last`, or None. `part` returns the
        part of a problem to which the values belong."""
        last = len(self.revisions) - 1 if last is None else last
        values, known = dict(params), names_of(part(self.revisions[first]["problem"]))
        for step in self.revisions[first + 1 : last + 1]:
            known = names_of(part(step["problem"]))
            for name, renamed in step["map"].items():
                if name in values:
                    values[name] = renamed.get(values[name], values[name])
            for name, value in step["fill"].items() if fills else ():
                if name in known:
                    values.setdefault(name, value)
            for name, value in step["keep"].items():
                if name in values and values[name] == value:
                    del values[name]
        return values if set(values) <= set(known) else None

    def carried_context(self, values, first):
        """Return a context of revision `first` in the present problem, or None."""
        values, present = self.carried(values, first, part=context_of), context_of(self.problem)
        is_usable = values is not None and is_measurable(present, values) and contains(present, values)
        return values if is_usable else None

    def carried_fidelity(self, value, first):
        """Return a fidelity of revision `first` in the present problem, and the last revision that has it."""
        for number, step in enumerate(self.revisions[first + 1 :], first + 1):
            old, new = self.revisions[first]["problem"]["fidelity"], step["problem"]["fidelity"]
            if old is None:
                value, first = new, number
            elif new is None and value == old:
                value, first = None, number
            elif new is not None and value <= new:
                first = number
        return value, first

    def carried_point(self, params, first, last=None):
        """Return a complete point in a later problem, or None if the problem cannot express it."""
        values = self.carried(params, first, last)
        return values if values is not None and is_measurable(self._problem(last), values) else None

    def _problem(self, number):
        return self.revisions[-1 if number is None else number]["problem"]

    def carried_outcome(self, name, first):
        """Return the present name of an outcome of revision `first`; None stands for an outcome that was removed."""
        for step in self.revisions[first + 1 :]:
            outcomes = step["problem"]["outcomes"]
            if outcomes is not None:
                if name is None:
                    name = next((each for each, goal in outcomes.items() if goal == "maximize"), "")
                if name not in outcomes:
                    return False
        return name

    # Calls. Each returns the names of the outcomes of which the caller must be warned, or None if it must be refused.

    def values(self, value, first):
        """Return (values by present name, names that were removed) of a report."""
        given = value if isinstance(value, dict) else {None: value}
        has_names = self.revisions[first]["problem"]["outcomes"] is not None
        known = self._problem(first)["outcomes"]
        if has_names != isinstance(value, dict) or (has_names and not set(given) <= set(known)):
            raise Impossible
        present = {name: self.carried_outcome(name, first) for name in given}
        kept = {new: given[name] for name, new in present.items() if new is not False}
        return kept, [name for name, new in present.items() if new is False]

    def new_trial(self, start, context, fidelity, results=None, attrs=None):
        missing, now = {name: ["pending", None, None] for name in self.outcomes}, len(self.revisions) - 1
        trial = {"start": [now, start], "run": None, "context": [now, context], "left_out": False}
        trial |= {"fidelity": [now, fidelity], "curve": {}}
        self.trials.append(trial | {"results": missing | (results or {}), "attrs": dict(attrs or {})})
        return len(self.trials) - 1

    def trial(self, number):
        if number >= len(self.trials):
            raise Impossible
        return self.trials[number]

    def point(self, params, first):
        """Return the present point of the argument `params`, and None if it cannot be carried."""
        if isinstance(params, list):
            params = dict(enumerate(params))
        if isinstance(params, int):
            rows = self.revisions[first]["problem"]["rows"]
            if rows is None or params >= len(rows):
                raise Impossible
            params = rows[params]
        if not is_measurable(self.revisions[first]["problem"], params):
            raise Impossible
        return self.carried_point(params, first)

    def is_start(self, trial, params, first):
        """Return whether a trial that is left out was started at this point of revision `first`."""
        number, start = trial["start"]
        is_dict = isinstance(params, dict) and trial["left_out"] and trial["run"] is None and number <= first
        return is_dict and params == self.carried_point(start, number, first)

    def present_fidelity(self, given, first):
        """Return (the present fidelity, whether there is one) of a call that names a fidelity of revision `first`."""
        highest = self.revisions[first]["problem"]["fidelity"]
        if given is None:
            return self.problem["fidelity"], True
        if highest is None or given > highest:
            raise Impossible
        value, last = self.carried_fidelity(given, first)
        return value, last == len(self.revisions) - 1

    def observe(
        self, first, trial, value, params=None, std=None, attrs=None, fidelity=None, amend=False, replicate=False
    ):
        record = self.trial(trial)
        kept, removed = self.values(value, first)
        if params is not None and self.is_start(record, params, first):
            params = None  # the trial was run as suggested
        at = None if params is None else self.point(params, first)
        if fidelity is not None:
            present, exists = self.present_fidelity(fidelity, first)
            if record["left_out"] or not exists or record["fidelity"][1] != present:
                raise Impossible
        if not kept:
            return None
        states = {record["results"][name][0] for name in kept}
        if (amend or replicate) != (states == {"observed"}) or (not (amend or replicate) and "observed" in states):
            raise Impossible
        if record["left_out"] and (replicate or (amend and params is None)):
            raise Impossible
        if params is not None and not replicate and any(each[0] == "observed" for each in record["results"].values()):
            raise Impossible  # all values of a trial are measured at one point
        if params is not None and at is None:
            return None
        new = {name: ["observed", each, std] for name, each in kept.items()}
        if replicate:
            others = {name: ["abandoned", None, None] for name in self.outcomes}
            here = record["run"] or record["start"]
            at = here[1] if at is None else at
            self.new_trial(at, record["context"][1], record["fidelity"][1], others | new, attrs)
            return removed
        record["results"] |= new
        record["attrs"] |= attrs or {}
        if at is not None:
            record["run"] = [len(self.revisions) - 1, at]
            record["left_out"] = min(record["context"][0], record["fidelity"][0]) != len(self.revisions) - 1
        return removed

    def close(self, verb, first, trial, outcome=None):
        """fail, abandon and withdraw."""
        results = self.trial(trial)["results"]
        if outcome is not None:
            outcomes = self.revisions[first]["problem"]["outcomes"]
            if outcomes is None or outcome not in outcomes:
                raise Impossible
            outcome = self.carried_outcome(outcome, first)
            if outcome is False:
                return None
        before = {"withdraw": ("observed", "failed")}.get(verb, ("pending",))
        names = [name for name in results if results[name][0] in before and outcome in (None, name)]
        if not names:
            raise Impossible
        after = {"fail": "failed", "abandon": "abandoned", "withdraw": "withdrawn"}[verb]
        if verb == "withdraw" and any(each[0] == "pending" for each in results.values()):
            after = "pending"
        results |= {name: [after, None, None] for name in names}
        return []

    def report(self, first, trial, value, step):
        if not has_curve(self.revisions[first]["problem"]):
            raise Impossible
        if not all(has_curve(each["problem"]) for each in self.revisions[first:]):
            return None
        if step in self.trial(trial)["curve"]:
            raise Impossible
        self.trial(trial)["curve"][step] = value
        return []

    def add(self, first, params, value=None, context=None, std=None, attrs=None, fidelity=None):
        is_list = isinstance(value, list)
        if fidelity is None:
            fidelity = self.revisions[first]["problem"]["fidelity"]  # without a fidelity, the highest one
        removed, (present, exists) = [], self.present_fidelity(fidelity, first)
        for each, its in zip(params, value, strict=True) if is_list else [(params, value)]:
            kept, gone = ({}, []) if its is None else self.values(its, first)
            at, its_context = self.point(each, first), self.context(context, first)
            if at is None or its_context is None or not exists or (its is not None and not kept):
                return None
            results = {name: ["observed", y, std] for name, y in kept.items()}
            self.new_trial(at, its_context, present, results, attrs)
            removed += gone
        return removed

    def context(self, given, first):
        """Return the present context of a call that names a context of revision `first`, or None."""
        known = context_of(self.revisions[first]["problem"])
        given = given or {}
        if not is_measurable(known, given) or not contains(known, given):
            raise Impossible
        return self.carried_context(given, first)

    def enqueue(self, first, params):
        problem = self.revisions[first]["problem"]
        params = dict(enumerate(params)) if isinstance(params, list) else params
        is_complete = set(params) == set(names_of(problem))
        if is_complete:
            if not is_measurable(problem, params) or not contains(problem, params):
                raise Impossible
            at = self.carried_point(params, first)
            if at is None or not contains(self.problem, at):
                return None
        else:
            at = self.part(params, first)
            if at is None:
                return None
        self.queue.append([at, is_complete])
        return []

    def part(self, params, first, fills=True):
        """Return given values of some parameters in the present problem, or None."""
        problem, last = self.revisions[first]["problem"], self.problem
        if not all(name in names_of(problem) and is_allowed(problem, name, held) for name, held in params.items()):
            raise Impossible
        values = self.carried(params, first, fills=fills)
        if values is None or not all(is_allowed(last, name, held) for name, held in values.items()):
            return None
        if last["rows"] is not None and not any(values.items() <= row.items() for row in last["rows"]):
            return None
        return values

    def suggest(self, first, n, fixed=None, context=None, fidelity=None):
        """Return (context, fidelity, fixed values, enqueued points) that the trials must have, or None if the call must
        be refused."""
        present, exists = self.present_fidelity(fidelity, first)
        context = self.context(context, first)
        if fixed is not None and self.queue:
            raise Impossible
        part = self.fixed(fixed or {}, first)
        if context is None or part is None or not exists:
            return None
        return context, present, part, [] if fixed else self.queue[:n]

    def fixed(self, given, first):
        """Return fixed values (a value, a list of choices or a range) in the present problem, or None. A parameter that
        is added later stays open."""
        problem, last = self.revisions[first]["problem"], self.problem
        if not all(name in names_of(problem) and is_allowed(problem, name, held) for name, held in given.items()):
            raise Impossible
        found = dict(given)
        for step in self.revisions[first + 1 :]:
            for name, renamed in step["map"].items():
                if name in found:
                    held = found[name]
                    is_list = isinstance(held, list)
                    found[name] = [renamed.get(each, each) for each in held] if is_list else renamed.get(held, held)
            for name, value in step["keep"].items():
                if name in found and holds(found[name], value):
                    del found[name]
            if not set(found) <= set(names_of(step["problem"])):
                return None
        return found if all(is_allowed(last, name, held) for name, held in found.items()) else None

    def suggested(self, points, context, fidelity, n_queued):
        del self.queue[:n_queued]
        return [self.new_trial(each, context, fidelity) for each in points]

    def revise(self, problem, **changes):
        empty = {"map": {}, "fill": {}, "keep": {}}
        if any(not is_complete for _, is_complete in self.queue):
            raise Impossible
        before = self.outcomes
        self.revisions.append({"problem": problem} | empty | changes)
        now = len(self.revisions) - 1
        queued = [self.carried_point(point, now - 1) for point, _ in self.queue]
        if any(point is None or not contains(problem, point) for point in queued):
            self.revisions.pop()
            raise Impossible
        self.queue = [[point, True] for point in queued]
        for trial in self.trials:
            for part in ("start", "run"):
                if trial[part] is not None:
                    number, params = trial[part]
                    at = self.carried_point(params, number)
                    trial[part] = trial[part] if at is None else [now, at]
            context = self.carried_context(trial["context"][1], trial["context"][0])
            trial["context"] = trial["context"] if context is None else [now, context]
            value, last = self.carried_fidelity(trial["fidelity"][1], trial["fidelity"][0])
            trial["fidelity"] = [last, value]
            parts = [trial["context"], trial["fidelity"], trial["run"] or trial["start"]]
            trial["left_out"] = any(each[0] != now for each in parts)
            self._revise_results(trial, before)

    def _revise_results(self, trial, before):
        results = trial["results"]
        missing = "pending" if any(each[0] == "pending" for each in results.values()) else "abandoned"
        if before == [None] and self.outcomes != [None]:
            results = {self.carried_outcome(None, len(self.revisions) - 2): results[None]}
        trial["results"] = {name: results.get(name, [missing, None, None]) for name in self.outcomes}

    def shown(self):
        """Return the trials in the form of `shown`."""
        return [self._shown(each) for each in self.trials]

    def _shown(self, trial):
        now = len(self.revisions) - 1
        start, run = trial["start"], trial["run"] or trial["start"]
        is_used = not trial["left_out"]
        is_expressed = is_used and start[0] == now
        return {
            "left_out": trial["left_out"],
            "params": start[1] if is_expressed else None,
            "params_run": run[1] if is_used else None,
            "outside": is_used and not contains(self.problem, run[1]),
            "context": trial["context"][1] if is_expressed else None,
            "fidelity": trial["fidelity"][1] if is_expressed else None,
            "results": trial["results"],
            "curve": trial["curve"],
            "attrs": trial["attrs"],
        }


def shown(study):
    """Return the trials of a study as the model shows them. The params of a trial that is left out are not compared."""
    return [shown_trial(each) for each in study.trials]


def shown_trial(trial):
    results = {name: [each.state, each.value, each.std] for name, each in trial.outcomes.items()}
    is_used = trial.left_out is None
    return {
        "left_out": not is_used,
        "params": named(trial.params) if is_used else None,
        "params_run": named(trial.params if trial.params_run is None else trial.params_run) if is_used else None,
        "outside": is_used and trial.outside,
        "context": dict(trial.context or {}) if is_used else None,
        "fidelity": trial.fidelity if is_used else None,
        "results": results or {None: [trial.state, trial.value, trial.std]},
        "curve": dict(trial.curve),
        "attrs": dict(trial.attrs),
    }


def named(params):
    """Return a point by name; the names of the columns of an array are their numbers."""
    return dict(params) if isinstance(params, dict) else dict(enumerate(params.tolist()))


# Random histories.


def random_problem(chance):
    outcomes = chance.choice([None, ["p"], ["p", "q"], ["p", "q", "r"]])
    goals = None if outcomes is None else {name: chance.choice(["record", "bound"]) for name in outcomes}
    if goals is not None and chance.random() < 0.9:
        goals = dict(chance.sample(list((goals | {"f": "maximize"}).items()), len(goals) + 1))
    context = chance.choice([{}, {}, {"age": UNITS["t"]}, {"site": list("abc")}])
    found = {"space": None, "rows": None, "outcomes": goals, "context": context}
    found["fidelity"] = chance.choice([None, None, None, 9, 27])
    if found["fidelity"] is not None and goals is not None:
        found["outcomes"] = dict(goals) | ({} if "maximize" in goals.values() else {"f": "maximize"})
    if chance.random() < 0.2:
        texts = [chance.choice("abc") for _ in range(8)]
        rows = [{"c": text, "t": float(chance.randrange(10, 90)), "h": float(i)} for i, text in enumerate(texts)]
        return found | {"rows": rows}
    if chance.random() < 0.2:
        return found | {"rows": [random_row(chance) | {2: float(i)} for i in range(8)]}
    names = chance.sample(["x", "y", "t", "n"], 2)
    space = {name: UNITS[name] for name in names} | {"c": list("abc")}
    return found | {"space": shuffled(chance, space)}


def random_row(chance):
    return {0: float(chance.randrange(10, 90)), 1: round(chance.random(), 3)}


def shuffled(chance, mapping):
    return dict(chance.sample(list(mapping.items()), len(mapping)))


def random_revision(chance, problem):
    """Return a revision as the arguments of `Model.revise`."""
    changed, changes = copy.deepcopy(problem), {}
    kinds = ["order", "swap", "rename", "reuse", "fill", "keep", "choice", "outcomes", "outcomes", "domain", "context"]
    kinds += ["fidelity"] if problem["fidelity"] is not None or chance.random() < 0.2 else []
    for kind in chance.sample(kinds, chance.choice([1, 1, 2])):
        if kind == "outcomes":
            changed["outcomes"] = random_outcomes(chance, changed["outcomes"])
        elif kind == "fidelity":
            changed["fidelity"] = chance.choice([None, 9, 27])
        elif kind == "context":
            changed["context"] = random_context(chance, changed["context"], changes)
        elif 0 in names_of(problem) and kind not in ("order", "domain"):
            continue  # an array has no names
        elif kind in ("swap", "rename", "reuse") and "c" not in changes.get("map", {}) and "c" in names_of(changed):
            name, texts = "c", choices_of(changed, "c")
            if choices_of(problem, "c") != texts or len(texts) < 2:
                continue
            first, second = chance.sample(texts, 2)
            free = chance.choice([each for each in TEXTS if each not in texts])
            # With "reuse", a text gets another meaning: the former choice has another name now.
            renamed = {first: second, second: first} if kind == "swap" else {first: free}
            changes.setdefault("map", {})[name] = renamed
            replace_texts(changed, renamed)
            if kind == "reuse" and changed["rows"] is None:
                changed["space"]["c"].append(first)
            elif kind == "reuse":
                changed["rows"].append(changed["rows"][0] | {"c": first})
        elif kind == "fill":
            name = chance.choice([each for each in UNITS if each not in names_of(changed)] or [None])
            if name is not None and name not in names_of(problem):
                changes.setdefault("fill", {})[name] = inside(chance, UNITS[name])
                add_parameter(chance, changed, name, changes["fill"][name])
        elif kind == "keep" and len(names_of(changed)) > 1:
            name = chance.choice(names_of(problem))
            if name in names_of(changed) and name not in changes.get("map", {}):
                choices = choices_of(problem, name)
                kept = inside(chance, UNITS[name]) if choices is None else chance.choice(choices)
                changes.setdefault("keep", {})[name] = kept
                remove_parameter(changed, name)
        elif kind == "choice" and "c" in (changed["space"] or ()) and "c" not in changes.get("map", {}):
            texts = changed["space"]["c"]
            if len(texts) > 2 and chance.random() < 0.5:
                texts.remove(chance.choice(texts))
            else:
                texts.insert(0, chance.choice([each for each in TEXTS if each not in texts]))
        elif kind == "order":
            reorder(chance, changed)
        elif kind == "domain":
            change_domain(chance, changed)
    if "c" not in names_of(changed) and "map" in changes:
        changes["map"].pop("c", None)
    return {"problem": changed} | changes


def random_context(chance, context, changes):
    """Return another context, and enter fill, map and keep."""
    found = copy.deepcopy(context)
    if not found or (len(found) == 1 and chance.random() < 0.3):
        name = chance.choice([each for each in ("age", "site") if each not in found])
        found[name] = UNITS["t"] if name == "age" else list("abc")
        changes.setdefault("fill", {})[name] = inside(chance, UNITS["t"]) if name == "age" else chance.choice("abc")
        return shuffled(chance, found)
    name = chance.choice(list(found))
    if chance.random() < 0.3:
        kept = inside(chance, UNITS["t"]) if name == "age" else chance.choice(found[name])
        changes.setdefault("keep", {})[name] = kept
        del found[name]
    elif name == "age":
        found[name] = chance.choice([(10.0, 90.0), (10.0, 60.0), (0.0, 100.0)])
    elif chance.random() < 0.5:
        first, second = chance.sample(found[name], 2)
        changes.setdefault("map", {})[name] = {first: second, second: first}
    else:
        chance.shuffle(found[name])
    return shuffled(chance, found)


def random_outcomes(chance, outcomes):
    if outcomes is None:
        return shuffled(chance, {"f": "maximize", "p": "record"})
    kind, found = chance.choice(["order", "drop", "add", "rename", "goal"]), dict(outcomes)
    free = [name for name in "pqrs" if name not in found]
    if kind == "drop" and len(found) > 1:
        del found[chance.choice(list(found))]
    elif kind == "add" and free:
        found[chance.choice(free)] = "record"
    elif kind == "rename" and free:
        old = chance.choice(list(found))
        found = {chance.choice(free) if name == old else name: goal for name, goal in found.items()}
    elif kind == "goal":
        for name in found:
            if found[name] != "maximize":
                found[name] = chance.choice(["record", "bound"])
    return shuffled(chance, found)


def replace_texts(problem, renamed):
    if problem["rows"] is None:
        problem["space"]["c"] = [renamed.get(each, each) for each in problem["space"]["c"]]
    else:
        problem["rows"] = [row | {"c": renamed.get(row["c"], row["c"])} for row in problem["rows"]]


def add_parameter(chance, problem, name, value):
    if problem["rows"] is None:
        problem["space"][name] = UNITS[name]
    else:
        problem["rows"] = [row | {name: value} for row in problem["rows"]]
        problem["rows"] += [row | {name: inside(chance, UNITS[name])} for row in problem["rows"][:2]]


def remove_parameter(problem, name):
    if problem["rows"] is None:
        del problem["space"][name]
        return
    rows = [{each: row[each] for each in row if each != name} for row in problem["rows"]]
    problem["rows"] = [row for i, row in enumerate(rows) if row not in rows[:i]]


def reorder(chance, problem):
    if problem["rows"] is not None:
        problem["rows"] = chance.sample(problem["rows"], len(problem["rows"]))
        if 0 in problem["rows"][0]:
            return
        order = chance.sample(names_of(problem), len(names_of(problem)))
        problem["rows"] = [{name: row[name] for name in order} for row in problem["rows"]]
        return
    problem["space"] = shuffled(chance, problem["space"])
    for each in problem["space"].values():
        if isinstance(each, list):
            chance.shuffle(each)


def change_domain(chance, problem):
    """Move a bound, or add or remove a row."""
    if problem["rows"] is not None:
        rows = problem["rows"]
        if len(rows) > 4 and chance.random() < 0.5:
            rows.remove(chance.choice(rows))
        else:
            new = {name: chance.choice(rows)[name] for name in rows[0]}
            if new not in rows:
                rows.insert(0, new)
        return
    ranges = [name for name, each in problem["space"].items() if isinstance(each, tuple)]
    if ranges:
        name = chance.choice(ranges)
        low, high = UNITS[name]
        width = high - low
        narrow = high - (width // 2 if isinstance(low, int) else width / 4)
        problem["space"][name] = chance.choice([(low, high), (low - width, high + width), (low, narrow)])


def inside(chance, limits):
    low, high = limits
    return chance.randint(low, high) if isinstance(low, int) else round(low + (high - low) * chance.random(), 3)


def random_point(chance, problem, far=False):
    """Return a point of a problem; with `far`, perhaps a point beyond a bound or between the rows."""
    if problem["rows"] is not None:
        row = dict(chance.choice(problem["rows"]))
        if far and chance.random() < 0.3:
            row |= {name: round(value + chance.random(), 3) for name, value in row.items() if isinstance(value, float)}
        return row
    found = {}
    for name, each in problem["space"].items():
        found[name] = chance.choice(each) if isinstance(each, list) else inside(chance, each)
        if far and isinstance(each, tuple) and chance.random() < 0.1:
            found[name] = each[1] + 1
    return found


VERBS = {
    "suggest": 5,
    "observe": 12,
    "amend": 2,
    "replicate": 2,
    "fail": 2,
    "abandon": 2,
    "withdraw": 3,
    "report": 1,
    "add": 3,
    "enqueue": 2,
    "again": 2,
}


class Story:
    """Draws the calls of a history one after another, for the present state of the model."""

    def __init__(self, chance, model):
        self.chance, self.model, self.count = chance, model, 0

    def call(self):
        """Return a call as a dict: who makes it (*by*), the *verb* and the arguments."""
        chance, model = self.chance, self.model
        now = len(model.revisions) - 1
        asleep = [by for by, known in enumerate(model.known) if known < now]
        if model.trials and chance.random() < 0.2 and all(now - known < LONGEST_SLEEP for known in model.known):
            return {"by": 0, "verb": "revise"} | random_revision(chance, model.problem)
        by = chance.choice(asleep) if asleep and chance.random() < 0.4 else 0
        if not asleep and chance.random() < 0.2:
            by = chance.randrange(len(model.known))
        verb = chance.choices(list(VERBS), VERBS.values())[0]
        if not model.trials and verb not in ("add", "enqueue"):
            verb = "suggest"
        return {"by": by, "verb": verb} | self.arguments(verb, model.known[by])

    def arguments(self, verb, first):
        chance, model = self.chance, self.model
        problem, point = model.revisions[first]["problem"], {}
        self.count += 1
        at = {"context": random_point(chance, context_of(problem))} if problem["context"] else {}
        level = {"fidelity": chance.choice([3, 9, problem["fidelity"]])} if problem["fidelity"] else {}
        level = level if level and chance.random() < 0.6 and level["fidelity"] <= problem["fidelity"] else {}
        key = f"k{self.count}" if chance.random() < 0.4 else None
        if verb == "again":
            calls = [each for each, _ in model.keys.values()]
            return {"call": chance.choice(calls)} if calls else {"call": None}
        if verb == "suggest":
            is_fixed = chance.random() < 0.3 and problem["rows"] is None
            fixed = self.fixed(problem) if is_fixed else None
            return {"n": chance.choice([1, 1, 2]), "fixed": fixed, "key": key} | at | level
        if verb == "enqueue":
            found = self.given_point(problem)
            if isinstance(found, dict) and chance.random() < 0.4:
                names = chance.sample(list(found), chance.randint(0, len(found) - 1))
                found = {name: found[name] for name in names}
            return {"params": found}
        if verb == "add":
            found = {"params": self.given_point(problem, far=True, index=True)} | at | level
            if chance.random() < 0.7:
                found["value"] = self.value(problem)
            if isinstance(found.get("value"), dict) and chance.random() < 0.2:
                self.count += 1
                found |= {"params": [found["params"], self.given_point(problem)]}
                found["value"] = [found["value"], self.value(problem)]
            return found | ({"attrs": {"row": self.count}} if "value" in found and chance.random() < 0.3 else {})
        number = {"trial": chance.randrange(len(model.trials))}
        if verb == "report":
            return number | {"value": float(self.count), "step": chance.randint(1, STEPS)}
        if verb in ("observe", "amend", "replicate"):
            found = number | {"value": self.value(problem), "key": key}
            if chance.random() < 0.4 and verb != "amend":
                found["params"] = self.given_point(problem, far=True, index=True)
            if chance.random() < 0.3:
                found["attrs"] = {chance.choice(["row", "who"]): self.count}
            return found | level | ({"std": 0.1} if chance.random() < 0.2 else {})
        outcome = chance.choice([None, *(problem["outcomes"] or ())])
        return number | {"outcome": outcome}

    def given_point(self, problem, far=False, index=False):
        """Return a point as it is given in a call: a dict, a row without names or the index of a row."""
        chance = self.chance
        if index and problem["rows"] is not None and chance.random() < 0.4:
            return chance.randrange(len(problem["rows"]))
        found = random_point(chance, problem, far)
        return list(found.values()) if 0 in found else found

    def fixed(self, problem):
        """Return a fixed value, a list of allowed choices or a range."""
        chance, name = self.chance, self.chance.choice(names_of(problem))
        each = problem["space"][name]
        if chance.random() < 0.5:
            return {name: random_point(chance, problem)[name]}
        if isinstance(each, list):
            return {name: chance.sample(each, chance.randint(1, len(each)))}
        return {name: tuple(sorted([inside(chance, each), each[1]]))}

    def value(self, problem):
        # All values differ, so that no report is a repetition by accident.
        if problem["outcomes"] is None:
            return float(self.count)
        names = self.chance.sample(list(problem["outcomes"]), self.chance.randint(1, len(problem["outcomes"])))
        return {name: self.count + i / 8 for i, name in enumerate(names)}


# The calls.


class Handles:
    """The handles of one study; the model of what they must do."""

    def __init__(self, problem, n, url, name, client=None):
        self.model = Model(problem, n)
        # The calls of handles that had not read a revision are carried or refused.
        self.counts = Counter(calls=0, carried=0, refused=0)
        made = bl.RandomSearch(**domain_of(problem), seed=1)
        self.url, self.name, self.client = url, name, client
        self.studies = [bl.Study(name, url, made)] + [bl.Study.load(name, url) for _ in range(n - 1)]

    def close(self):
        if not harness.is_url(self.url):
            harness.close(*self.studies)
        self.studies.clear()  # connections to a server are closed with their studies

    def make(self, call):
        """Make a call, and compare the result with the model. Return an error as text, or None."""
        call = copy.deepcopy(call)
        by, verb = call.pop("by"), call.pop("verb")
        model, study, before = self.model, self.studies[by], copy.deepcopy(self.model)
        if verb == "revise":
            return self.revise(study, by, call)
        if verb == "again":
            return self.again(by, call["call"])
        first = model.known[by]
        if verb in ("amend", "replicate"):
            verb, call = "observe", call | {verb: True}
        key = call.pop("key", None)
        named = {name: value for name, value in call.items() if value is not None}
        if verb in ("fail", "abandon", "withdraw"):
            expected = model.close(verb, first, **named)
        else:
            expected = getattr(model, verb)(first, **named)
        arguments = named | ({} if key is None else {"key": key})
        found, warned = self.sent(by, verb, arguments, first)
        numbers = None
        if verb == "suggest" and expected is not None and not isinstance(found, BaseException):
            wrong, numbers = self.check_suggested(found, expected)
            if wrong:
                return wrong
        model.known[by] = len(model.revisions) - 1
        if first < model.known[by]:
            self.counts["refused" if expected is None else "carried"] += 1
        if isinstance(found, BaseException):
            if not isinstance(found, bl.BelatedError):
                return f"raised {type(found).__name__}: {found}"
            if expected is not None:
                return f"was refused: {type(found).__name__}: {found}"
            self.model.__dict__.update(before.__dict__ | {"known": model.known})
            if "revision" not in str(found):
                return f"was refused without the number of a revision: {found}"
            study.sync()
        elif expected is None:
            return "was accepted"
        elif verb != "suggest" and warned is not None and not all(f"{name!r}" in warned for name in expected if name):
            return f"did not warn of {expected}: {warned}"
        elif key is not None:
            model.keys[verb, key] = ({"verb": verb, "arguments": arguments}, numbers)
        return self.compared(by)

    def sent(self, by, verb, arguments, first):
        """Make a call with a handle, or with a request that names the revision. Return what it returned or raised, and
        the text of the warnings, which a server does not send."""
        is_request = self.client is not None and by > 0 and verb not in ("add", "enqueue")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                if is_request:
                    found = self.requested(verb, copy.deepcopy(arguments), first)
                else:
                    found = getattr(self.studies[by], verb)(**arguments)
            except BaseException as error:  # a panic of the core is a BaseException
                if isinstance(error, KeyboardInterrupt):
                    raise
                found = error
        if is_request:
            return found, None
        return found, " ".join(str(each.message) for each in caught)

    def requested(self, verb, body, first):
        """Send a call to the server. An answer that refuses it is raised as BelatedError."""
        path = f"/v1/studies/{self.name}/"
        if isinstance(body.get("fixed"), dict):
            ranges = {name: held for name, held in body["fixed"].items() if isinstance(held, tuple)}
            body["fixed"] |= {name: {"low": low, "high": high} for name, (low, high) in ranges.items()}
        path += verb if verb == "suggest" else f"trials/{body.pop('trial')}/{verb}"
        answer = self.client.post(path, json=body | {"revision": first + 1})
        if answer.status_code >= 500:
            raise OSError(answer.text)
        if answer.status_code >= 300:
            raise bl.BelatedError(answer.text)
        found = answer.json()
        return [self.studies[0].trial(each["number"]) for each in found["trials"]] if verb == "suggest" else found

    def check_suggested(self, trials, expected):
        """Compare the suggested points; return an error or None, and the numbers of the trials."""
        model, (context, fidelity, fixed, queued) = self.model, expected
        trials = trials if isinstance(trials, list) else [trials]
        params = [named(trial.params) for trial in trials]
        numbers = model.suggested(params, context, fidelity, len(queued))
        for point in params:
            if not is_measurable(model.problem, point) or not contains(model.problem, point):
                return f"suggested {point}, which is not a point of the problem", numbers
            if not all(holds(held, point[name]) for name, held in fixed.items()):
                return f"suggested {point} and not {fixed}", numbers
        for point, (part, _) in zip(params, queued, strict=False):
            if not part.items() <= point.items():
                return f"suggested {point}, and {part} is next in the queue", numbers
        if [trial.number for trial in trials] != numbers:
            return f"started the trials {[trial.number for trial in trials]} and not {numbers}", numbers
        return None, numbers

    def again(self, by, known):
        """Repeat a call with its key, perhaps with another handle."""
        if known is None or (known["verb"], known["arguments"]["key"]) not in self.model.keys:
            raise Impossible
        numbers = self.model.keys[known["verb"], known["arguments"]["key"]][1]
        found, _ = self.sent(by, known["verb"], known["arguments"], self.model.known[by])
        self.model.known[by] = len(self.model.revisions) - 1
        if isinstance(found, BaseException):
            return f"repeated {known} raised {type(found).__name__}: {found}"
        if numbers is not None:
            again = [each.number for each in (found if isinstance(found, list) else [found])]
            if again != numbers:
                return f"repeated {known} returned {again} and not {numbers}"
        return self.compared(by)

    def revise(self, study, by, call):
        study.sync()
        problem, changes = call["problem"], {name: call[name] for name in ("map", "fill", "keep") if name in call}
        self.model.revise(problem, **changes)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                study.revise(**domain_of(problem), **changes)
        except bl.BelatedError as error:
            self.model.revisions.pop()
            raise Impossible(str(error)) from None
        self.model.known[by] = len(self.model.revisions) - 1
        return self.compared(by)

    def compared(self, by):
        """Return the difference between a handle that is up to date and the model."""
        study = self.studies[by]
        try:
            study.sync()  # after requests, the handle has not read the log
            return difference(shown(study), self.model.shown())
        except bl.BelatedError as error:
            return f"left a study that cannot be read: {error}"

    def at_end(self):
        """Return the difference between the stored study and the model."""
        return difference(shown(bl.Study.load(self.name, self.url)), self.model.shown())


def difference(found, expected):
    if len(found) != len(expected):
        return f"stored {len(found)} trials and not {len(expected)}"
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        for name, value in other.items():
            # The point, the context and the fidelity of a start that the problem cannot express are not compared.
            if one[name] != value and not (name in ("params", "context", "fidelity") and value is None):
                return f"stored trial {number} with {name} {one[name]} and not {value}"
    return None


# Failures.


def played(problem, n, calls, url, name, client=None):
    """Play the calls of a history. Return (number of calls, error or None). Raise Impossible for a call that the state
    does not allow."""
    handles = Handles(problem, n, url, name, client)
    try:
        for i, call in enumerate(calls):
            wrong = handles.make(call)
            if wrong:
                return i + 1, f"{call['verb']} by handle {call['by']} {wrong}"
        return len(calls), handles.at_end()
    finally:
        handles.close()


def shortest(problem, n, calls, new_url, client=None):
    """Return a part of the calls that still fails, from which no call can be left out, and its error."""
    i, wrong = len(calls) - 2, None
    while i >= 0:
        part = calls[:i] + calls[i + 1 :]
        try:
            n_made, found = played(problem, n, part, *new_url(), client)
        except Impossible:
            found = None
        if found:
            calls, wrong = part[:n_made], found
        i = min(i, len(calls) - 1) - 1
    return calls, wrong


def one(number, seed, length, new_url, client=None):
    """Play one random history; return (counts of its calls, its failure or None)."""
    chance = random.Random(f"{seed} {number}")
    problem, n = random_problem(chance), chance.choice([2, 2, 3])
    handles, calls = Handles(problem, n, *new_url(), client), []
    story = Story(chance, handles.model)
    try:
        while len(calls) < length:
            call = story.call()
            state = copy.deepcopy(handles.model.__dict__)
            try:
                wrong = handles.make(call)
            except Impossible:
                handles.model.__dict__.update(state)
                continue
            calls.append(call)
            handles.counts["calls"] += 1
            if wrong:
                return handles.counts, (problem, n, calls, f"{call['verb']} by handle {call['by']} {wrong}")
        wrong = handles.at_end()
        return handles.counts, (problem, n, calls, wrong) if wrong else None
    finally:
        handles.close()


def program(problem, calls):
    """Return a history as text."""
    lines = [f"study = {domain_of(problem)}"]
    for call in calls:
        rest = {name: value for name, value in call.items() if name not in ("by", "verb") and value is not None}
        if call["verb"] == "revise":
            rest = domain_of(rest.pop("problem")) | rest
        lines.append(f"handle {call['by']}: {call['verb']} {rest}")
    return "\n".join(lines)


@contextlib.contextmanager
def server_of(url):
    """A context manager that gives a client of a server for the studies of a store, or None without a URL."""
    if url is None:
        yield None
        return
    import service

    with service.Service(url) as started, started.client() as client:
        yield client


def run(histories=500, length=30, seed=0, store="sqlite", http=0, shorten=5, limit=None):
    """Return all results. `http` is 1 for clients of a server in place of all handles but the first."""
    deadline, failures, counts = harness.Deadline(limit), harness.Failures(), Counter()
    with harness.folder(memory=True) as folder, harness.place(store, folder) as path:
        names = iter(range(10**9))

        def new_url():
            return harness.url(path), f"s{next(names)}"

        with server_of(harness.url(path) if http else None) as client:
            for number in range(histories):
                if deadline.over():
                    break
                found, failure = one(number, seed, length, new_url, client)
                counts += Counter({"histories": 1}) + found
                if failure is not None:
                    problem, n_handles, calls, wrong = failure
                    if len(failures) < shorten:
                        calls, found = shortest(problem, n_handles, calls, new_url, client)
                        wrong = found or wrong
                    failures.append(f"history {number}: {wrong}\n{program(problem, calls)}")
    return dict(counts) | failures.figures()


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, histories=500, length=30, seed=0, store="sqlite", http=0, shorten=5))

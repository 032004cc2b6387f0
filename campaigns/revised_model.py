"""A model of a study: what its trials and its queue are after calls and revisions, in the user's terms."""

from revised_problems import contains, context_of, has_curve, holds, is_allowed, is_measurable, names_of

# A trial has the first of these states that one of its outcomes has.
ORDER = ["pending", "observed", "withdrawn", "failed", "abandoned"]


class Impossible(Exception):
    """A call cannot be made in this state, so that a shortened history is not a history."""


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
        params = self.named(params, first)
        if not is_measurable(self.revisions[first]["problem"], params):
            raise Impossible
        return self.carried_point(params, first)

    def named(self, params, first):
        """Return the argument `params` by name."""
        if isinstance(params, list):
            return dict(enumerate(params))
        if not isinstance(params, int):
            return params
        rows = self.revisions[first]["problem"]["rows"]
        if rows is None or params >= len(rows):
            raise Impossible
        return rows[params]

    def is_start(self, trial, params, first):
        """Return whether a trial that is left out was started at this point of revision `first`."""
        number, start = trial["start"]
        is_known = trial["left_out"] and trial["run"] is None and number <= first
        return is_known and self.named(params, first) == self.carried_point(start, number, first)

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
            if not exists or record["fidelity"] != [len(self.revisions) - 1, present]:
                raise Impossible
        if not kept:
            return None
        states = {record["results"][name][0] for name in kept}
        if (amend or replicate) != (states == {"observed"}) or (not (amend or replicate) and "observed" in states):
            raise Impossible
        now = len(self.revisions) - 1
        has_situation = record["context"][0] == record["fidelity"][0] == now
        if record["left_out"] and replicate and (params is None or not has_situation):
            raise Impossible
        if record["left_out"] and amend and params is None:
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
        run, states = trial["run"] or trial["start"], [each[0] for each in trial["results"].values()]
        return {
            "left_out": trial["left_out"],
            "params": trial["start"][1],
            "params_run": run[1],
            "outside": not trial["left_out"] and not contains(self.problem, run[1]),
            "context": trial["context"][1],
            "fidelity": trial["fidelity"][1],
            "state": next(state for state in ORDER if state in states),
            "results": trial["results"],
            "curve": trial["curve"],
            "attrs": trial["attrs"],
        }

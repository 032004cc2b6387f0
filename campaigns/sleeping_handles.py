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
from revised_model import Impossible, Model
from revised_problems import (
    STEPS,
    contains,
    context_of,
    domain_of,
    holds,
    inside,
    is_measurable,
    names_of,
    random_point,
    random_problem,
    random_revision,
)

import belated as bl

LONGEST_SLEEP = 3  # revisions

# Random histories.

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
        problem = model.revisions[first]["problem"]
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


def shown(study):
    """Return the trials of a study as the model shows them."""
    trials, pending = study.trials, {each.number for each in study.pending}
    wrong = [each.number for each in trials if (each.number in pending) != (each.state == "pending")]
    assert not wrong, f"{wrong} are pending, or are among the pending trials, but not both"
    return [shown_trial(each) for each in trials]


def shown_trial(trial):
    results = {name: [each.state, each.value, each.std] for name, each in trial.outcomes.items()}
    return {
        "left_out": trial.left_out is not None,
        "params": named(trial.params),
        "params_run": named(trial.params_run),
        "outside": trial.outside,
        "context": dict(trial.context or {}),
        "fidelity": trial.fidelity,
        "state": trial.state,
        "results": results or {None: [trial.state, trial.value, trial.std]},
        "curve": dict(trial.curve),
        "attrs": dict(trial.attrs),
    }


def named(params):
    """Return a point by name; the names of the columns of an array are their numbers."""
    return dict(params) if isinstance(params, dict) else dict(enumerate(params.tolist()))


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
                study.revise(**domain_of(problem), **changes, drop=True)
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
            if one[name] != value:
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

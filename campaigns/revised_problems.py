"""Problems of studies as plain data in the user's terms, and random problems and revisions."""

import copy

import belated as bl

STEPS = 9
TEXTS = "abcdefgh"
UNITS = {"x": (0.0, 1.0), "y": (0.0, 1.0), "t": (10.0, 90.0), "h": (0.0, 24.0), "n": (1, 9)}

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


# Random problems, revisions and points.


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
            if len(texts) + 1 == len(TEXTS) or (len(texts) > 2 and chance.random() < 0.5):
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

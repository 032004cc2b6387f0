"""Conversion of Optuna's trials and distributions, and conversion of an Optuna study to an optimizer with trials.

Optuna is imported only to open a storage; trials and distributions are recognised by their attributes.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

from belated._core import BelatedError, InvalidPoint, InvalidSetting, InvalidSpace
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.imported import ImportedTrial, Result
from belated.optimizers.imported import Withdrawn as Taken
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.optuna_outcomes import (
    CONSTRAINTS,
    constraints_of,
    error_of,
    further_values,
    result_beside_curve,
    result_of_trial,
    results_of,
)
from belated.optimizers.outcomes import MAX_OBJECTIVES, AtMost, Goal, Maximize, Minimize, has_bounds, objectives
from belated.optimizers.problem import Problem
from belated.optimizers.report import attrs_as_json, usable_attrs
from belated.short_repr import short_repr
from belated.space.dimensions import Categorical, Dimension, Integer, Real
from belated.space.space import Space
from belated.study.definition import definition_of, optimizer_from
from belated.study.optuna_reports import reports_of, shift_of, shifted
from belated.warn import warn

#: The prefix of the user attributes of a study of Optuna that record withdrawn trials.
WITHDRAWN = "belated:withdrawn:"

# If a parameter has more values than this number, it is not considered as the parent of a condition.
_MOST_LEVELS = 100


class Withdrawn(NamedTuple):
    """The withdrawal of a finished trial of Optuna, whose value cannot change."""

    reason: str | None
    #: The number of trials of the study at the time of the withdrawal, and this time in seconds.
    before: int
    at: float


def withdrawn_trials(user_attrs: Mapping[str, Any]) -> dict[int, Withdrawn]:
    """Return the withdrawals in the user attributes of a study, by the number of the trial.

    If two processes withdrew a trial at the same time, the earlier record counts.
    """
    records = [(each["before"], each["at"], key) for key, each in user_attrs.items() if key.startswith(WITHDRAWN)]
    found: dict[int, Withdrawn] = {}
    for before, at, key in sorted(records):
        for number in user_attrs[key]["numbers"]:
            found.setdefault(number, Withdrawn(user_attrs[key]["reason"], before, at))
    return dict(sorted(found.items()))


def dimension_of(name: str, distribution: Any) -> Dimension:
    """Return the dimension with the values of a distribution of Optuna. A single value gives a constant.

    Raises
    ------
    InvalidSpace
        The distribution is of an unknown kind, or belated cannot search it (integers beyond 2**40, a repeated choice).
    """
    try:
        if hasattr(distribution, "choices"):
            return Categorical(distribution.choices)
        low, high, step = distribution.low, distribution.high, distribution.step
        if distribution.single():
            return Categorical([low])
        if isinstance(low, int):
            return Integer(low, high, log=distribution.log, step=None if step == 1 else step)
        return Real(low, high, log=distribution.log, step=step)
    except InvalidSpace as error:
        raise InvalidSpace(f"parameter {name!r} has {distribution!r}, which cannot be searched: {error}") from None
    except AttributeError:
        raise InvalidSpace(
            f"parameter {name!r} has a distribution of the unknown kind {type(distribution).__name__}: use "
            "optuna.distributions.FloatDistribution, IntDistribution or CategoricalDistribution"
        ) from None


def minimizes(study: Any) -> bool:
    """Return whether a study of Optuna minimises its objective. The study must have exactly one objective."""
    if len(study.directions) != 1:
        raise InvalidSetting(
            f"study {study.study_name!r} has {len(study.directions)} objectives, and learning curves need one: leave "
            "out curve and BelatedPruner, or combine the objectives into one value"
        )
    return bool(study.directions[0].name == "MINIMIZE")


def goals_of(study: Any) -> dict[str, Goal]:
    """Return the goals of the objectives of a study of Optuna by name, in Optuna's order.

    A single objective is named "value". Several objectives have the names of Optuna's metrics or, without different
    names, the names "values_0", "values_1", … of Optuna's tables.
    """
    goals: list[Goal] = [Minimize() if each.name == "MINIMIZE" else Maximize() for each in study.directions]
    n = len(goals)
    if n == 1:
        return {"value": goals[0]}
    if n > MAX_OBJECTIVES:
        raise InvalidSetting(
            f"study {study.study_name!r} has {n} objectives, and at most {MAX_OBJECTIVES} can be optimised: report the "
            "others as constraints, or combine some into one value"
        )
    names = study._storage.get_study_system_attrs(study._study_id).get("study:metric_names") or ()
    if len(set(names)) < n or any(name.startswith(CONSTRAINTS) for name in names):
        names = [f"values_{i}" for i in range(n)]
    return dict(zip(names, goals, strict=True))


# Import of a study.


def load(storage: Any, name: str) -> Any:
    """Return the study of Optuna with this name.

    Raises
    ------
    InvalidSetting
        The study does not exist.
    """
    try:
        import optuna
    except ImportError:
        raise ImportError("from_optuna needs optuna: pip install 'belated[optuna]'") from None
    try:
        return optuna.load_study(study_name=name, storage=storage, sampler=optuna.samplers.RandomSampler())
    except KeyError:
        names = optuna.get_all_study_names(storage)
        raise InvalidSetting(
            f"there is no study {name!r} of Optuna in this storage: pass one of {short_repr(names)}"
        ) from None


def space_of(trials: Sequence[Any]) -> Space:
    """Return the space of the parameters of trials, in the order of their first appearance.

    A parameter that occurs in only some of the complete trials gets a condition, if the value of another parameter
    tells in which.

    Raises
    ------
    InvalidSpace
        The trials have no parameters; a parameter cannot be searched, or has several distributions; or a parameter
        occurs only in some trials, and no condition determines these trials.
    """
    distributions: dict[str, Any] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            known = distributions.setdefault(name, distribution)
            if known != distribution:
                raise InvalidSpace(
                    f"parameter {name!r} has {known!r} in one trial and {distribution!r} in another: pass an optimizer "
                    "whose space has all of its values"
                )
    if not distributions:
        raise InvalidSpace("the study has no trial with parameters: pass an optimizer with their space")
    dimensions = {name: dimension_of(name, distribution) for name, distribution in distributions.items()}
    # A trial that ended early may lack parameters that the objective would have suggested later.
    whole = [trial.params for trial in trials if trial.state.name == "COMPLETE"]
    for name in dimensions:
        if not all(name in params for params in whole):
            dimensions[name] = _conditional(name, dimensions, whole)
    return Space(dimensions)


def _conditional(name: str, dimensions: Mapping[str, Dimension], points: Sequence[Mapping[str, Any]]) -> Dimension:
    """Return a dimension with the condition that determines the points at which the parameter exists."""
    for parent, dimension in dimensions.items():
        n_levels = dimension.n_levels
        if parent == name or n_levels is None or n_levels > _MOST_LEVELS or not all(parent in each for each in points):
            continue
        having, others = (
            {dimension.level(each[parent]) for each in points if (name in each) is there} for there in (True, False)
        )
        if having and not having & others:
            if not isinstance(dimension, Categorical):
                # If the values are numbers, prefer a threshold, so that the condition also covers values that did not
                # occur in trials.
                if min(having) > max(others):
                    having = set(range(min(having), n_levels))
                elif max(having) < min(others):
                    having = set(range(max(having) + 1))
            return replace(dimensions[name], when={parent: [dimension.member(i) for i in sorted(having)]})
    raise InvalidSpace(
        f"parameter {name!r} is in some trials only, and no other parameter tells in which: pass an optimizer with the "
        'space, in which when= says where it is used, as in bl.Integer(2, 5, when={"kernel": "poly"})'
    )


def optimizer_with_trials(storage: Any, name: str, given: Optimizer | None) -> Optimizer:
    """Return an optimizer with all trials of a study of Optuna: a copy of `given`, by default a `BayesOpt`."""
    study = load(storage, name)
    goals, trials = goals_of(study), study.get_trials(deepcopy=False)
    if given is None:
        given = _default(trials, goals)
    _check_given(given, goals, name)
    made = optimizer_from(definition_of(given), given.time, given.constraints)
    shift = 0 if made.curve is None else shift_of(made.curve, ((each.number, reports_of(each)) for each in trials))
    changed, withdrawn = set[str](), withdrawn_trials(study.user_attrs)
    for trial in trials:
        try:
            changed |= _add(made, trial, goals, shift, withdrawn.get(trial.number))
        except BelatedError as error:
            raise type(error)(f"trial {trial.number} of Optuna's study {name!r}: {error}") from None
    if changed:
        warn(
            f"user attributes {sorted(changed)} of Optuna's study {name!r} are not JSON data and were changed: NaN and "
            "infinite numbers are None, keys of dicts are strings, and other objects are their repr"
        )
    return made


def _default(trials: Sequence[Any], goals: Mapping[str, Goal]) -> Optimizer:
    """Return the optimizer for trials of a study with these objectives."""
    if len(goals) == 1:
        return BayesOpt(space_of(trials), direction=_direction(goals))
    # Constraints without names are read in the order of the outcomes, so they come first.
    constraints = sorted(constraints_of(trials), key=lambda name: name.startswith(f"{CONSTRAINTS}:"))
    return BayesOpt(space_of(trials), outcomes={**goals, **dict.fromkeys(constraints, AtMost(0.0))})


def _direction(goals: Mapping[str, Goal]) -> Literal["maximize", "minimize"]:
    """Return the direction of an optimizer with these objectives; the goals of several have the directions."""
    return "minimize" if len(goals) == 1 and all(isinstance(goal, Minimize) for goal in goals.values()) else "maximize"


def _check_given(given: Any, goals: Mapping[str, Goal], name: str) -> None:
    direction = _direction(goals)
    if not isinstance(given, Optimizer):
        raise InvalidSetting(f"optimizer={short_repr(given)} is not usable: pass an optimizer of belated, or None")
    if len(goals) == 1 and given.direction != direction:
        raise InvalidSetting(
            f"optimizer has direction={given.direction!r}, and Optuna's study {name!r} {direction}s: pass "
            f"direction={direction!r} to it"
        )
    if type(given.domain) is not Space or given.context is not None or given.fidelity is not None:
        raise InvalidSetting("optimizer has candidates, a context or a fidelity, which trials of Optuna do not have")
    problem = given._problem
    others = [problem.outcomes[outcome] for outcome in _others(problem)]
    if problem.outcomes and problem.curve is not None:
        raise InvalidSetting("optimizer has outcomes with a curve, which trials of Optuna do not have")
    if problem.outcomes or len(goals) > 1:
        kinds = [type(problem.outcomes[outcome]) for outcome in _objectives(problem, goals)]
        if kinds != [type(goal) for goal in goals.values()]:
            raise InvalidSetting(
                f"optimizer has the objectives {objectives(problem.outcomes)}, and Optuna's study {name!r} has "
                f"{goals}: declare outcomes with these goals in this order"
            )
    if any(has_bounds({"": goal}) and goal != AtMost(0.0) for goal in others):
        raise InvalidSetting(
            f"optimizer has outcomes={short_repr(problem.outcomes)}, and Optuna's constraints are at most 0: give the "
            "outcomes of constraints the goal bl.AtMost(0.0)"
        )
    if given._log.n_events():
        raise InvalidSetting("optimizer has trials already: pass one without")


def _add(
    optimizer: Optimizer, trial: Any, goals: Mapping[str, Goal], shift: int, withdrawn: Withdrawn | None
) -> set[str]:
    """Log a trial of Optuna in its present state. Return the names of the user attributes that were changed.

    `shift` is added to the steps of reports, which are logged if the optimizer declares a curve.
    """
    space = optimizer.domain
    assert isinstance(space, Space)
    if trial.state.name == "WAITING":
        fixed = trial.system_attrs.get("fixed_params", {})
        known = {key: value for key, value in fixed.items() if key in space}
        if known:
            with suppress(InvalidPoint):
                optimizer.enqueue(known)
        return set()
    outcome = result_of_trial(trial) if optimizer.curve is None else result_beside_curve(trial)
    try:
        place = space.locate({key: value for key, value in trial.params.items() if key in space})
    except InvalidPoint:
        if outcome.state == "observed" or (optimizer._problem.outcomes and trial.state.name == "COMPLETE"):
            raise
        return set()  # the point is incomplete, because the trial ended early or is still sampling
    started, ended = (_time(optimizer, at) for at in (trial.datetime_start, trial.datetime_complete))
    found = {name: usable_attrs({name: value}) for name, value in trial.user_attrs.items()}
    attrs = {name: value for data, _ in found.values() for name, value in data.items()}
    took = trial.duration
    names, problem = list(optimizer._problem.outcomes), optimizer._problem
    others: list[float | None] = []
    if names:
        outcome = result_of_trial(trial, constrained=False)
        others = further_values(trial, len(goals)) + _constraints_by_outcome(problem, trial)
    results = results_of(outcome, others, ended)
    if names:
        # The results of the objectives come first.
        order = [names.index(name) for name in [*_objectives(problem, goals), *_others(problem)]]
        results = [results[order.index(k)] for k in range(len(names))]
    whole: Taken | None = None
    if withdrawn is not None and any(each.state not in ("pending", "abandoned") for each in results):
        whole = (outcome.state, outcome.value, withdrawn.reason, withdrawn.at)
        results = [_taken_back(each, withdrawn) for each in results]
    imported = ImportedTrial(
        results,
        bool(names),
        whole,
        error_of(outcome, others),
        duration=None if took is None else max(took.total_seconds(), 0.0),
        # Optuna does not store the times of reports. Durations are not forecast from reports with equal times.
        curve=[] if optimizer.curve is None else shifted(reports_of(trial), shift),
        started_at=started,
    )
    added, rest = imported.adding(place, attrs=attrs_as_json(attrs))
    number = optimizer._log.record(added, started)
    assert number is not None  # the trial is new
    for action, at in rest(number):
        optimizer._log.record(action, at)
    return {name for name, (_, problem) in found.items() if problem}


def _taken_back(result: Result, withdrawn: Withdrawn) -> Result:
    """Return a result after its withdrawal; an abandoned result cannot be withdrawn."""
    if result.state == "abandoned":
        return result
    taken = (result.state, result.value, withdrawn.reason, withdrawn.at)
    return Result("withdrawn", at=result.at, withdrawal=taken)


def _others(problem: Problem) -> list[str]:
    """Return the outcomes beside the objectives, which have the values of Optuna's constraints."""
    return [name for name in problem.outcomes if name not in objectives(problem.outcomes)]


def _objectives(problem: Problem, goals: Mapping[str, Goal]) -> list[str]:
    """Return the names of the objectives of an optimizer in the order of Optuna's values.

    The order is the order of the declaration, unless the objectives have the names of Optuna's metrics.
    """
    own = objectives(problem.outcomes)
    return list(goals) if set(own) == set(goals) else own


def _constraints_by_outcome(problem: Problem, trial: Any) -> list[float | None]:
    """Return the values of the constraints of a trial of Optuna, in the order of `_others`.

    Constraints with names are the outcomes of these names, with or without the prefix of the system attribute. Other
    constraints are the outcomes beside the objectives, in their order.
    """
    others = _others(problem)
    values = trial.system_attrs.get(CONSTRAINTS) or ()
    if len(values) > len(others):
        raise InvalidSetting(
            f"it has {len(values)} constraints, and optimizer has the outcomes {others} for them: declare an outcome "
            "bl.AtMost(0.0) for each"
        )
    found: dict[str, float] = dict(zip(others, values, strict=False))
    prefix = f"{CONSTRAINTS}:"
    return [trial.system_attrs.get(prefix + name.removeprefix(prefix), found.get(name)) for name in others]


def _time(optimizer: Optimizer, at: datetime | None) -> float | None:
    """Return a time of Optuna in seconds. For an unknown time, return None, or the current time if the clock counts
    seconds."""
    if at is not None:
        return at.timestamp()
    return optimizer._problem.wall_time() if optimizer.clock == "seconds" else None

"""The outcomes of a trial: values that are measured together or apart, and the goal of each outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any, ClassVar, Literal, TypeAlias

from belated._core import InvalidSetting, InvalidValue, TrialRecord
from belated.optimizers.report import Withdrawal, as_amount, as_number
from belated.optimizers.values import Value, checked
from belated.short_repr import short_repr
from belated.space.arguments import is_gap


@dataclass(frozen=True, repr=False)
class Goal(Value, argument=True):
    """The base of the goals of outcomes."""

    # The name of the kind of goal in the core, and the fields with the lower and the upper bound.
    _kind: ClassVar[str] = "within"
    _bounds: ClassVar[tuple[str | None, str | None]] = (None, None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.range is not None and not self.range[0] < self.range[1]:
            raise InvalidSetting(
                f"plausible={self.range!r} leaves no range: pass the smallest and the largest possible value"
            )
        _, low, high = self.core
        if low is not None and high is not None and not low < high:
            raise InvalidSetting(
                f"the bounds {low!r} and {high!r} leave no range: the lower bound must be below the upper bound (no "
                "measured value equals a number exactly; give the range that is good enough, as Between(low, high))"
            )

    @property
    def range(self) -> tuple[float, float] | None:
        """The smallest and the largest possible value."""
        found: tuple[float, float] | None = getattr(self, "plausible", None)
        return found

    @property
    def core(self) -> tuple[str, float | None, float | None]:
        """The goal in the form that the core takes: its kind, the lower and the upper bound."""
        low, high = (None if name is None else getattr(self, name) for name in self._bounds)
        return self._kind, low, high


@dataclass(frozen=True, repr=False)
class Minimize(Goal, name="minimize"):
    """The outcome is the objective, and smaller values are better.

    If there are several objectives, `at_most` is not a bound, but the reference from which values are worthless; see
    `hypervolume`. The other bound is then refused.

    Parameters
    ----------
    at_least : float, optional
        The smallest allowed value.
    at_most : float, optional
        The largest allowed value.
    plausible : (float, float), optional
        The smallest and the largest possible value. Reports of other values raise `InvalidValue`: for example, percent
        are refused where a fraction is expected.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, outcomes={"error": bl.Minimize(at_most=5.0)})
    """

    _kind = "minimize"
    _bounds = ("at_least", "at_most")

    at_least: float | None = None
    at_most: float | None = None
    plausible: tuple[float, float] | None = None


@dataclass(frozen=True, repr=False)
class Maximize(Goal, name="maximize"):
    """The outcome is the objective, and larger values are better.

    If there are several objectives, `at_least` is not a bound, but the reference from which values are worthless; see
    `hypervolume`. The other bound is then refused.

    Parameters
    ----------
    at_least : float, optional
        The smallest allowed value.
    at_most : float, optional
        The largest allowed value.
    plausible : (float, float), optional
        The smallest and the largest possible value. Reports of other values raise `InvalidValue`: for example, percent
        are refused where a fraction is expected.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, outcomes={"yield": bl.Maximize(at_least=0.5)})
    """

    _kind = "maximize"
    _bounds = ("at_least", "at_most")

    at_least: float | None = None
    at_most: float | None = None
    plausible: tuple[float, float] | None = None


@dataclass(frozen=True, repr=False)
class AtMost(Goal):
    """The outcome must be at most `bound`.

    Parameters
    ----------
    bound : float
        The largest allowed value.
    plausible : (float, float), optional
        The smallest and the largest possible value. Reports of other values raise `InvalidValue`: for example, percent
        are refused where a fraction is expected.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, outcomes={"error": "minimize", "memory": bl.AtMost(4.0)}, seed=0)
    >>> trial = optimizer.suggest()
    >>> trial.observe({"error": 0.1})
    >>> trial.state, trial.missing
    ('pending', ['memory'])
    >>> trial.observe({"memory": 3.2})
    >>> trial.state, trial.values, optimizer.best_value_
    ('observed', {'error': 0.1, 'memory': 3.2}, 0.1)
    """

    _bounds = (None, "bound")

    bound: float
    plausible: tuple[float, float] | None = None


@dataclass(frozen=True, repr=False)
class AtLeast(Goal):
    """The outcome must be at least `bound`.

    Parameters
    ----------
    bound : float
        The smallest allowed value.
    plausible : (float, float), optional
        The smallest and the largest possible value. Reports of other values raise `InvalidValue`: for example, percent
        are refused where a fraction is expected.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, outcomes={"cost": "minimize", "purity": bl.AtLeast(0.95)})
    """

    _bounds = ("bound", None)

    bound: float
    plausible: tuple[float, float] | None = None


@dataclass(frozen=True, repr=False)
class Between(Goal):
    """The outcome must lie between two bounds.

    Parameters
    ----------
    low : float
        The smallest allowed value.
    high : float
        The largest allowed value, above `low`.
    plausible : (float, float), optional
        The smallest and the largest possible value. Reports of other values raise `InvalidValue`: for example, percent
        are refused where a fraction is expected.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, outcomes={"yield": "maximize", "pH": bl.Between(6.8, 7.4)})
    """

    _bounds = ("low", "high")

    low: float
    high: float
    plausible: tuple[float, float] | None = None


@dataclass(frozen=True, repr=False)
class Record(Goal):
    """The outcome is stored with the trial. It is not modelled, and does not affect suggestions.

    Parameters
    ----------
    plausible : (float, float), optional
        The smallest and the largest possible value. Reports of other values raise `InvalidValue`: for example, percent
        are refused where a fraction is expected.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, outcomes={"yield": "maximize", "colour index": bl.Record()})
    """

    _kind = "record"

    plausible: tuple[float, float] | None = None


#: The largest number of objectives.
MAX_OBJECTIVES = 3

#: The argument `outcomes` of optimizers.
OutcomesLike: TypeAlias = Mapping[str, Goal | Literal["minimize", "maximize"]]

#: The outcomes by name.
Outcomes: TypeAlias = dict[str, Goal]


@dataclass(frozen=True, slots=True)
class OutcomeRecord:
    """The state of one outcome of a trial; see `Trial.outcomes`.

    Attributes
    ----------
    state : str
        "pending" if the outcome is missing, "observed", "failed", "abandoned", "stopped" or "withdrawn".
    value : float or None
        The observed value.
    std : float or None
        The standard deviation of the noise of the value, if it was reported.
    observed_at : float or None
        The time of the observation on the optimizer's clock.
    finished_at : datetime or None
        The wall-clock time (UTC) when the outcome got its state; None while it is missing, or if it is not known.
    withdrawal : Withdrawal or None
        The last result of the outcome that was withdrawn; see `Trial.withdrawal`.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, outcomes={"error": "minimize", "memory": bl.AtMost(4.0)}, seed=0)
    >>> trial = optimizer.suggest()
    >>> trial.observe({"memory": 3.2})
    >>> [(name, each.state, each.value) for name, each in trial.outcomes.items()]
    [('error', 'pending', None), ('memory', 'observed', 3.2)]
    """

    state: str
    value: float | None
    std: float | None
    observed_at: float | None
    finished_at: datetime | None
    withdrawal: Withdrawal | None = None


def checked_outcomes(given: Any, direction: str, needs_objective: bool) -> Outcomes:
    """Return the argument `outcomes` with values instead of strings; {} for None.

    `direction` is the argument of this name. `needs_objective` is False if the optimizer accepts outcomes without an
    objective.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not given or not all(_is_name(name) for name in given):
        raise InvalidSetting(
            f"outcomes={short_repr(given)} is not usable: pass a dict with the goal of each outcome, as "
            '{"error": "minimize", "memory": bl.AtMost(4.0)}'
        )
    found: Outcomes = {}
    for name, goal in given.items():
        if isinstance(goal, (int, float)) or goal == "equals":
            raise InvalidSetting(
                f"outcomes[{name!r}]={short_repr(goal)} is not a goal: no measured value equals a number exactly; give "
                "the range that is good enough, as bl.Between(low, high), or minimise the distance as the objective"
            )
        found[name] = checked(goal, Goal, f"outcomes[{name!r}]")
    optimised = objectives(found)
    if len(optimised) > MAX_OBJECTIVES:
        raise InvalidSetting(
            f"outcomes has {len(optimised)} objectives, {optimised}: at most {MAX_OBJECTIVES} can be optimised; give "
            "the others bounds (bl.AtMost, bl.AtLeast, bl.Between), or record them (bl.Record)"
        )
    if direction == "minimize" and not (len(optimised) == 1 and isinstance(found[optimised[0]], Minimize)):
        raise InvalidSetting(
            f"direction={direction!r} is not usable with outcomes={short_repr(given)}: the goals have the directions, "
            "so leave direction out"
        )
    if needs_objective and not optimised:
        raise InvalidSetting(
            f'outcomes={short_repr(given)} has no objective: give one outcome the goal "minimize" or "maximize"'
        )
    return found


def _is_name(name: Any) -> bool:
    """Return whether a name is text that can be stored."""
    return isinstance(name, str) and bool(name) and name == name.encode("utf-8", "ignore").decode()


def objectives(outcomes: Outcomes) -> list[str]:
    """Return the names of the objectives."""
    return [name for name, goal in outcomes.items() if isinstance(goal, (Minimize, Maximize))]


def bounds_of(outcomes: Outcomes, name: str) -> tuple[float | None, float | None]:
    """Return the bounds of an outcome. The bound of an objective of a front is its reference."""
    goal = outcomes[name]
    if isinstance(goal, (Minimize, Maximize)) and len(objectives(outcomes)) > 1:
        return None, None
    return goal.core[1:]


def has_bounds(outcomes: Outcomes) -> bool:
    """Return whether an outcome has bounds."""
    return any(bound is not None for name in outcomes for bound in bounds_of(outcomes, name))


def is_beyond(outcomes: Outcomes, values: Mapping[str, float]) -> bool:
    """Return whether one of the values lies beyond a bound."""
    for name, value in values.items():
        low, high = bounds_of(outcomes, name)
        if (low is not None and value < low) or (high is not None and value > high):
            return True
    return False


def is_within(outcomes: Outcomes, values: Mapping[str, float]) -> bool:
    """Return whether the objectives and all outcomes with bounds have values, and these lie within the bounds."""
    needed = [name for name, goal in outcomes.items() if not isinstance(goal, Record)]
    return all(name in values for name in needed) and not is_beyond(outcomes, values)


def position(outcomes: Outcomes, name: Any) -> int:
    """Return the position of an outcome; raise InvalidValue if it was not declared."""
    if not outcomes:
        raise InvalidValue(
            f"outcome={short_repr(name)} was not declared: pass outcomes= to the optimizer, or leave it out"
        )
    names = list(outcomes)
    if name not in names:
        raise InvalidValue(f"outcome={short_repr(name)} is unknown: pass one of {names}")
    return names.index(name)


def floats_of(outcomes: Outcomes, value: Any) -> list[tuple[int, float, float | None]] | None:
    """Return the values of outcomes, as `values_of` does, or None if not all are finite floats by their names."""
    if type(value) is not dict:
        return None
    found: list[tuple[int, float, float | None]] = [
        (i, y, None) for i, name in enumerate(outcomes) if type(y := value.get(name)) is float and isfinite(y)
    ]
    return found if 0 < len(found) == len(value) else None


def values_of(
    outcomes: Outcomes, what: str, value: Any, std: Any, warn_once: Callable[[str, str], None]
) -> list[tuple[int, float, float | None]]:
    """Return (position, value, std) of each reported outcome, in the order of the declaration.

    `value` and `std` are the arguments of these names: mappings, or a number if it belongs to all reported outcomes. A
    value in a mapping that is None or NaN is missing, and is left out. `warn_once` is the method of the problem.
    """
    floats = None if std is not None else floats_of(outcomes, value)
    if floats is not None:
        return floats
    names, is_given_by_name = list(outcomes), True
    if not isinstance(value, Mapping):
        if len(names) > 1 or isinstance(value, (str, Sequence)):
            raise InvalidValue(
                f"value={short_repr(value)} for {what}: outcomes are declared, so pass a dict of their values, as "
                f"{{{names[0]!r}: 0.5}}"
            )
        value, is_given_by_name = {names[0]: value}, False
    stds = std if isinstance(std, Mapping) else dict.fromkeys(value, std)
    for argument, given in (("value", value), ("std", stds)):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise InvalidValue(
                f"{argument} of {what} has unknown outcomes {unknown}: {advice_on_unknown(unknown[0], names)} (nothing "
                "was changed)"
            )
    without = [name for name in stds if name not in value]
    if without:
        raise InvalidValue(
            f"std of {what} has {without}, which have no value in this report: pass both, or leave them out"
        )
    if not value:
        raise InvalidValue(f"value of {what} is empty: pass the value of at least one of {names}")
    return [
        (
            position,
            as_number("value", value[name], f"{name!r} of {what}"),
            as_amount("std", stds.get(name), f"{name!r} of {what}", warn_once),
        )
        for position, name in enumerate(names)
        if name in value and not (is_given_by_name and is_gap(value[name]))
    ]


def advice_on_unknown(name: Any, names: Sequence[str]) -> str:
    """Return advice on a name that is not among the names of the declared outcomes."""
    from belated.hints import nearest

    near = nearest(str(name), names)
    kept = f"declare {short_repr(name)} as bl.Record(), or pass it in attrs"
    return f"did you mean {near!r}? Else {kept}" if near else f"pass some of {names}; to keep it, {kept}"


def missing(outcomes: Outcomes, record: TrialRecord) -> list[str]:
    """Return the names of the outcomes of a trial that have not arrived."""
    return [name for name, facts in zip(outcomes, record.outcomes, strict=True) if facts[0] == "pending"]


def is_within_bounds(outcomes: Outcomes, record: TrialRecord) -> bool:
    """Return whether all outcomes with bounds have values within their bounds."""
    for name, (_, value, *_) in zip(outcomes, record.outcomes, strict=True):
        low, high = bounds_of(outcomes, name)
        if low is not None and (value is None or value < low):
            return False
        if high is not None and (value is None or value > high):
            return False
    return True


def outcome_records(outcomes: Outcomes, record: TrialRecord, utc: Any) -> dict[str, OutcomeRecord]:
    """Return the states of the outcomes of a trial, by name."""
    found = zip(outcomes, record.outcomes, strict=True)
    return {
        name: OutcomeRecord(*facts[:4], utc(facts[4]), facts[5] and Withdrawal(*facts[5][:3], utc(facts[5][3])))
        for name, facts in found
    }

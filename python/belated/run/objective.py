"""The function f of a run: its possible signatures, its call, and the check of its result."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields
from time import perf_counter
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from belated.errors import InvalidSetting, InvalidValue, StoreError
from belated.optimizers.curve import Curve
from belated.optimizers.report import ATTRS_AS_TEXT, usable_attrs
from belated.run.raised import Place, Sendable, drop_frames, last_line_of_user
from belated.space.arguments import copied, finite, is_gap, one_line, real_number

T = TypeVar("T")

_FACTS = ("std", "cost", "attrs")
_RETURNED_KEYS = ("value", *_FACTS)
_ACCEPTED = "return a number, or a mapping with value and optionally std, cost and attrs"
_SEVERAL = (
    "for several objectives, declare each as outcomes={name: goal} and return a mapping of their values, or combine "
    "them into one number"
)

# Names that are equal without these characters, or whose similarity is at least this ratio, count as the same name with
# a spelling mistake.
_SEPARATORS = re.compile(r"[\s_]")
_SIMILAR = 0.8

_ASYNC = "pass a function that runs it, as in lambda params: asyncio.run(f(params))"

# Attributes of trials in other packages, and their replacements in belated.
_TRIAL_ELSEWHERE = {
    **dict.fromkeys(
        ("suggest_float", "suggest_int", "suggest_categorical", "suggest_uniform", "suggest_loguniform"),
        "declare the space as an argument of the run, and read trial.params[name]",
    ),
    **dict.fromkeys(("set_user_attr", "set_metric_names"), "write trial.attrs[name] = value"),
    "set_constraint": "declare outcomes={name: bl.AtMost(0.0)} and return a mapping of the values, or raise an "
    "exception if a measured value is not allowed",
    "user_attrs": "use trial.attrs",
    "should_prune": "use trial.should_stop()",
}


class Reports(Protocol):
    """What a worker needs to report the steps of a curve."""

    curve: Curve
    minimizes: bool

    def start(self, number: int) -> int | None:
        """Return the number of the attempt that starts; None if its curve has ended early."""

    def report(self, number: int, step: int, value: float, attempt: int) -> bool:
        """Report a step of a trial; return whether the trial should stop."""

    def should_stop(self, number: int) -> bool:
        """Return whether a trial should stop."""


@dataclass
class RunningTrial:
    """The argument `trial` of the function f of a run. A running trial can be used in any thread or process.

    Attributes
    ----------
    number : int
        The trial's number.
    params : dict or ndarray
        The params; for candidates without names the row, shape (d,).
    attrs : dict
        A dict that is empty at first. The entries that the function writes (JSON data under string keys) become the
        attrs of the `Trial`, even if the function raises an exception.
    fidelity : int or float, optional
        The fidelity of the trial, in the units of the declared `Fidelity`; None if a fidelity was not declared.

    Examples
    --------
    >>> import belated as bl
    >>> def f(params, trial):
    ...     trial.attrs["half"] = params["x"] / 2
    ...     return params["x"]
    >>> result = bl.maximize(f, {"x": (0.0, 1.0)}, n_trials=3, seed=0)
    >>> result.best_trial_.attrs["half"] == result.best_value_ / 2
    True
    """

    number: int
    params: Any
    attrs: dict[str, Any] = field(default_factory=dict)
    fidelity: Any = None
    _reports: Reports | None = field(default=None, repr=False)
    _attempt: int = field(default=0, repr=False)
    # The reported steps of this attempt.
    _curve: dict[int, float] = field(default_factory=dict, repr=False)
    _stopped: bool = field(default=False, repr=False)
    # The error of the store in the last exchange with the run. Such an error is never a failure of the trial.
    _store_error: StoreError | None = field(default=None, repr=False)

    def report(self, value: float, step: int) -> None:
        """Report the value of a step of the learning curve; see `Optimizer.report`. An infinite value counts as NaN.

        Raises
        ------
        InvalidSetting
            A curve was not declared, or the executor of the run does not support reports.
        InvalidValue
            The step is not in the curve, or the value is not a number.
        AlreadyObserved
            The step has another value already.
        ConnectionError
            The worker cannot connect to the process of the run, or the run has ended.
        StoreError
            The study's store cannot be read or written. If the function does not catch this error, the run ends, and
            the trial stays pending.
        """
        number, channel = _scalar(value), self._channel
        if isinstance(number, (float, np.floating)) and np.isinf(number):
            number = math.nan
        stops = self._exchange(lambda: channel.report(self.number, step, number, self._attempt))
        self._stopped = stops or self._stopped
        self._curve[step] = number

    def should_stop(self) -> bool:
        """Return True if the function should end before the last step. The result of the function is then ignored."""
        channel = self._channel
        self._stopped = self._stopped or self._exchange(lambda: channel.should_stop(self.number))
        return self._stopped

    def _exchange(self, call: Callable[[], T]) -> T:
        """Make a call to the process of the run, and note whether the store raised an error."""
        try:
            answer = call()
        except StoreError as error:
            self._store_error = error
            raise
        self._store_error = None
        return answer

    @property
    def _channel(self) -> Reports:
        if self._reports is None:
            raise InvalidSetting(
                "this run does not take reports: pass curve=bl.Curve(steps) to the optimizer; if you pass an executor, "
                "it must be one of threads, processes, Dask or Ray"
            )
        return self._reports

    def _value_of_curve(self) -> float | None:
        """Return the value that the declared curve has after the reported steps; None if all of them are NaN."""
        known = [self._curve[step] for step in sorted(self._curve) if not math.isnan(self._curve[step])]
        if not known:
            return None
        reports = self._channel
        best = min if reports.minimizes else max
        return best(known) if reports.curve.value == "best" else known[-1]

    # Hide this method from type checkers; otherwise they would allow any attribute.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            advice = _TRIAL_ELSEWHERE.get(name)
            end = f": {advice}" if advice else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{end}")


@dataclass(slots=True)
class Evaluation:
    """The outcome of an evaluation. An outcome can always be pickled.

    An outcome has a `value`, an `error` that was raised, or a `problem` with the result of f. `value` and `std` are
    dicts by name if outcomes were declared.
    """

    value: float | dict[str, float] | None = None
    std: float | dict[str, float] | None = None
    cost: float | None = None
    attrs: dict[str, Any] | None = None
    #: The duration of the call of f, in seconds.
    duration: float | None = None
    problem: str = ""
    #: The declared outcomes that have failed because of the problem. The values of the others count.
    failed: tuple[str, ...] = ()
    #: The entries of the result that were not declared, with their numbers; None for an entry that is not a number.
    undeclared: dict[str, float | None] = field(default_factory=dict)
    #: The declared outcomes that are not in the result, if it has entries that were not declared.
    absent: tuple[str, ...] = ()
    #: What the user should know about the result, by kind. A run warns once of each kind.
    notes: dict[str, str] = field(default_factory=dict)
    error: BaseException | None = None
    #: Whether the run continues after the error.
    caught: bool = False
    #: The type of the error and the user's line that raised it, or the type of the returned value.
    place: Place | None = None
    #: Whether the curve of the trial ended before its last step.
    stopped: bool = False
    #: Whether the trial stays pending, because `error` is an error of the store.
    stays_pending: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        facts = {each.name: getattr(self, each.name) for each in fields(self)}
        facts["error"] = None if self.error is None else Sendable(self.error)
        return Evaluation, tuple(facts.values())


@dataclass(frozen=True)
class Objective:
    """The function f of a run, and the arguments that f takes."""

    f: Callable[..., Any]
    #: The positional arguments: "params", "trial" or both.
    order: tuple[str, ...]
    #: Whether the argument trial=… is also passed.
    trial_by_name: bool
    catch: tuple[type[BaseException], ...]
    #: The names of the declared outcomes.
    outcomes: tuple[str, ...] = ()
    #: The name of the outcome whose curve is reported; None if outcomes were not declared.
    of_curve: str | None = None

    @property
    def takes_trial(self) -> bool:
        """Whether the function receives the trial and can read its fidelity."""
        return self.trial_by_name or "trial" in self.order

    @property
    def is_generator(self) -> bool:
        """Whether the function is a generator, whose values are the steps of a curve."""
        return inspect.isgeneratorfunction(inspect.unwrap(self.f))

    def __call__(self, number: int, point: Any, fidelity: Any = None, reports: Reports | None = None) -> Evaluation:
        """Call f at a point; return the outcome, which contains any error that f raises.

        An error of a future is therefore always an error of the executor.
        """
        trial, positional, keywords = None, [point], {}
        if self.takes_trial or reports is not None:
            trial = RunningTrial(number, copied(point), fidelity=fidelity, _reports=reports)
            arguments = {"params": point, "trial": trial}
            positional = [arguments[name] for name in self.order]
            keywords = {"trial": trial} if self.trial_by_name else {}
        start = perf_counter()
        try:
            if trial is not None and reports is not None:
                attempt = trial._exchange(lambda: reports.start(number))
                if attempt is None:
                    return Evaluation(stopped=True)
                trial._attempt = attempt
            returned = self.f(*positional, **keywords)
            if trial is not None and reports is not None and isinstance(returned, Generator):
                returned = _follow(returned, trial, self.of_curve)
            duration = perf_counter() - start
            attrs = {} if trial is None else trial.attrs
            if trial is not None and trial._stopped:
                return self._after_stop(returned, attrs, duration)
            return read_returned(returned, attrs, duration, self.outcomes)
        except BaseException as error:
            if trial is not None and isinstance(error, Exception):
                if trial._stopped:
                    return self._after_stop(None, trial.attrs, perf_counter() - start)
                if trial._store_error is not None:  # f may have raised another error because of it
                    return Evaluation(error=trial._store_error, stays_pending=True)
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                # Remove this frame from the traceback.
                error.with_traceback(error.__traceback__.tb_next)
            caught = isinstance(error, self.catch) and not isinstance(error, KeyboardInterrupt)
            duration = perf_counter() - start
            # Errors that the user names in `catch` are expected, and never end a run.
            named = tuple(each for each in self.catch if each not in (Exception, BaseException))
            place = None if isinstance(error, named) else last_line_of_user(error)
            rest = _Rest()
            attrs = _usable(None if trial is None else trial.attrs, rest)
            if caught:
                drop_frames(error)
            return Evaluation(
                attrs=attrs or None, duration=duration, notes=rest.notes, error=error, caught=caught, place=place
            )

    def _after_stop(self, returned: Any, attrs: dict[str, Any], duration: float) -> Evaluation:
        """Return the outcome of a trial whose curve ended early: the values of the outcomes without a curve, and the
        attrs."""
        if self.outcomes and isinstance(returned, Mapping):
            returned = {name: value for name, value in returned.items() if name != self.of_curve}
            found = read_returned(returned, attrs, duration, self.outcomes)
            found.notes.pop("missing", None)  # nothing is awaited
            found.stopped, found.place, found.absent = True, None, ()
            return found
        rest = _Rest()
        known = _usable(attrs, rest)
        return Evaluation(attrs=known or None, duration=duration, notes=rest.notes, stopped=True)


def evaluate(f: Objective, number: int, point: Any, fidelity: Any, reports: Reports | None = None) -> Evaluation:
    """Return the outcome of a trial at a point. This is a function because some executors can only call functions."""
    return f(number, point, fidelity, reports)


def _follow(steps: Generator[Any, Any, Any], trial: RunningTrial, name: str | None) -> Any:
    """Report each value of a generator as the next step, until the generator ends or the trial is stopped.

    Return the result of the generator, or the value of the curve if the generator returns None. `name` is the name of
    the outcome of the curve; None if outcomes were not declared.
    """
    with closing(steps):
        for step in itertools.count(1):
            try:
                value = next(steps)
            except StopIteration as end:
                if end.value is not None:
                    return end.value
                found = trial._value_of_curve()
                if found is None:
                    raise InvalidValue("f yielded no finite value: yield the value of each step") from None
                return found if name is None else {name: found}
            trial.report(value, step)
            if trial._stopped:
                break
    return None


def _scalar(value: Any) -> Any:
    """Return an array or tensor with one element as a number; return other objects unchanged."""
    shape = getattr(value, "shape", None)
    return value.item() if shape is not None and hasattr(value, "item") and all(n == 1 for n in shape) else value


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
# The kinds of *args and **kwargs.
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def objective(
    f: Any,
    names: Collection[str],
    catch: tuple[type[BaseException], ...],
    outcomes: tuple[str, ...] = (),
    of_curve: str | None = None,
) -> Objective:
    """Return the objective for a function; raise InvalidSetting if the function cannot be called with a dict of params.

    Parameters
    ----------
    f : callable
    names : collection of str
        The names of the space; empty for candidates without names.
    catch : tuple of exception classes
        Exceptions of f after which the run continues.
    outcomes : tuple of str
        The names of the declared outcomes.
    of_curve : str, optional
        The name of the outcome whose curve is reported.
    """
    if not callable(f):
        raise InvalidSetting(f"f={one_line(f)} is not usable: pass a function of the params")
    if inspect.iscoroutinefunction(inspect.unwrap(f)) or inspect.isasyncgenfunction(inspect.unwrap(f)):
        raise InvalidSetting(f"f={one_line(f)} is async, and is called as a plain function: {_ASYNC}")
    # If f is a built-in function, the names of its arguments do not show whether it takes the trial.
    signature = None if isinstance(f, BuiltinFunctionType) else signature_of(f)
    if signature is None:
        return Objective(f, ("params",), False, catch, outcomes, of_curve)
    parameters = list(signature.parameters.values())
    own = [each for each in parameters if each.kind not in _REST]
    required = [each.name for each in own if each.default is inspect.Parameter.empty and each.name != "trial"]
    if required and set(required) <= set(names):
        raise InvalidSetting(
            f"f={one_line(f)} takes {', '.join(required)} by the names of the space, and is called with one dict of "
            f"all params: write {_spread(own)}"
            + (f", or rename {required[0]} if it is that dict" if len(required) == 1 else "")
        )
    by_position = [each.name for each in parameters if each.kind in _BY_POSITION]
    only_trial = by_position == ["trial"] and all(each.kind is not _REST[0] for each in parameters)
    order: tuple[str, ...] = ("params",)
    if only_trial:
        order = ("trial",)
    elif "trial" in by_position[:2]:
        order = ("trial", "params") if by_position[0] == "trial" else ("params", "trial")
    trial_by_name = "trial" not in order and any(each.name == "trial" for each in own)
    try:
        signature.bind(*order, **({"trial": None} if trial_by_name else {}))
    except TypeError as error:
        raise InvalidSetting(
            f"f={one_line(f)} cannot be called with one dict of all params ({error}): "
            f"write {_filled_in(required) if by_position else _spread(own)}"
        ) from None
    return Objective(f, order, trial_by_name, catch, outcomes, of_curve)


def _filled_in(required: list[str]) -> str:
    """Return, as text for a message, a lambda that calls f with the params and with its other required arguments."""
    return f"lambda p: f({', '.join(['p', *(f'{name}=…' for name in required[1:])])})"


def _spread(own: list[inspect.Parameter]) -> str:
    """Return, as text for a message, a lambda that calls f with each of the params as a keyword argument."""
    takes_trial = any(each.name == "trial" for each in own)
    return "lambda p, trial: f(**p, trial=trial)" if takes_trial else "lambda p: f(**p)"


def signature_of(f: Any) -> inspect.Signature | None:
    """Return the signature of f, or None if it is unknown."""
    try:
        # A decorator may change the signature. Use the signature of the inner function only if the decorator passes all
        # arguments to it.
        own = inspect.signature(f, follow_wrapped=False)
        passes_on = tuple(each.kind for each in own.parameters.values()) == _REST
        return inspect.signature(f) if passes_on else own
    except (TypeError, ValueError):
        return None


# Checks of the result of f.


class _Unusable(Exception):
    """An invalid result of f. The argument of the exception is the end of a message."""


@dataclass
class _Rest:
    """What a result has beside the data of the trial: entries that become attributes, and outcomes without a value.

    `absent`, `failed` and `notes` are as in `Evaluation`, and `problems` says why outcomes have failed.
    """

    entries: dict[Any, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)

    def keep(self, entries: Mapping[Any, Any], known: Sequence[str], advice: str) -> None:
        """Keep entries as attributes. `known` has the names that may have been meant."""
        if not entries:
            return
        from belated.hints import nearest

        self.entries |= entries
        near = next((each for each in (nearest(str(name), known) for name in entries) if each), None)
        meant = f"did you mean {near!r}? Else " if near else ""
        self.notes["entries"] = f"f also returned {_names(entries)}, kept in attrs: {meant}{advice}"


def _names(names: Iterable[Any]) -> str:
    """Return names as text for a message."""
    return ", ".join(map(one_line, names))


def read_returned(returned: Any, written: Any, duration: float, outcomes: Sequence[str] = ()) -> Evaluation:
    """Return the outcome for a result of f. `written` contains the attrs that f wrote to its argument `trial`.

    `outcomes` has the names of the declared outcomes.
    """
    rest = _Rest()
    kept = _usable(written, rest)
    value: float | dict[str, float] | None = None
    std: float | dict[str, float] | None = None
    cost, given, problems = None, None, rest.problems
    try:
        value, std, cost, given = _read_outcomes(returned, outcomes, rest) if outcomes else _read(returned, rest)
    except _Unusable as wrong:
        problems = [str(wrong)]
    attrs = kept | _usable(rest.entries, rest) | _usable(given, rest)
    read = Evaluation(value, std, cost, attrs or None, duration, notes=rest.notes)
    if problems:
        kind = type(returned)
        read.problem = f"f returned {one_line(returned)}{' and'.join(problems)}"
        read.place = Place(f"returned {kind.__module__}.{kind.__qualname__}", "", 0)
        read.failed = rest.failed
    if rest.entries:
        read.undeclared = {str(name): _number(entry) for name, entry in rest.entries.items()}
        read.absent = rest.absent
    return read


def _usable(attrs: Any, rest: _Rest) -> dict[str, Any]:
    """Return attrs as JSON data; note what is wrong with them."""
    data, problem = usable_attrs(attrs)
    if problem:
        rest.notes.setdefault("attrs", f"{problem}; {ATTRS_AS_TEXT}")
    return data


def _read(returned: Any, rest: _Rest) -> tuple[float, float | None, float | None, Any]:
    """Return (value, std, cost, attrs) of a result of f; raise _Unusable if one of the numbers is invalid."""
    if type(returned) is float and math.isfinite(returned):  # the most frequent case
        return returned, None, None, None
    if isinstance(returned, Mapping):
        value, std, cost, attrs = _entries(returned, rest)
    else:
        value, std, cost, attrs = returned, None, None, None
    number = _number(value)
    if number is None:
        if returned is None:
            raise _Unusable(": did you forget `return`?")
        if inspect.isawaitable(returned):
            if inspect.iscoroutine(returned):
                returned.close()
            raise _Unusable(f", which was not awaited: {_ASYNC}")
        pair = _pair(returned)
        if pair is not None:
            first, second = map(one_line, pair)
            named = (
                f"return {{'value': {first}, 'std': {second}}} where the second is the standard deviation of the "
                f"noise, or {{'value': {first}, 'cost': {second}}} where it is a cost; "
            )
            raise _Unusable(f", two numbers without names: {'' if pair[1] < 0 else named}{_SEVERAL}")
        within = "" if value is returned else f" with value={one_line(value)}"
        several = isinstance(returned, (tuple, list))
        numbers = several and len(returned) > 2 and all(real_number(each) is not None for each in returned)
        advice = f": {_ACCEPTED}" if several else ""
        raise _Unusable(f"{within}, which is not one finite number{advice}{f'; {_SEVERAL}' if numbers else ''}")
    return number, _amount("std", std, rest), _amount("cost", cost, rest), attrs


def _entries(returned: Mapping[Any, Any], rest: _Rest, outcomes: Sequence[str] = ()) -> list[Any]:
    """Return the value, std, cost and attrs in a mapping that has the key "value"; keep its other entries."""
    others = {key: entry for key, entry in returned.items() if key not in _RETURNED_KEYS}
    wrong = next((key for key in others if "value" not in returned or key in outcomes), None)
    if wrong is not None or "value" not in returned:
        what = f"with the unknown key {one_line(wrong)}" if wrong is not None else "without the key 'value'"
        raise _Unusable(f", a mapping {what}: {_ACCEPTED}")
    absent = [key for key in _RETURNED_KEYS if key not in returned]
    rest.keep(others, absent, "return further data as attrs={...}, or declare them as outcomes with bl.Record()")
    return [returned.get(key) for key in _RETURNED_KEYS]


def _misnamed(others: Iterable[Any], absent: Sequence[str]) -> dict[str, Any]:
    """Return the outcomes whose names are misspelled in a result, each with the name in the result.

    `others` has the names in the result that were not declared, and `absent` the outcomes that it lacks.
    """
    if not absent:
        return {}
    from belated.hints import nearest

    found = {}
    for name in others:
        text = str(name).casefold()
        near = {each.casefold(): each for each in absent}
        same = next((each for each in near if _SEPARATORS.sub("", each) == _SEPARATORS.sub("", text)), None)
        meant = same or nearest(text, near, cutoff=_SIMILAR)
        if meant is not None:
            found[near[meant]] = name
    return found


def _is_long(returned: Any, names: Sequence[str]) -> bool:
    """Return whether a result has the keys value, std, cost and attrs, and not the names of outcomes."""
    if not isinstance(returned, Mapping) or "value" not in returned:
        return False
    if isinstance(returned["value"], Mapping):
        return True
    # An outcome may have the name of a key, and an undeclared metric the name "value".
    return "value" not in names and not any(key in names for key in returned if key not in _RETURNED_KEYS)


def _read_outcomes(
    returned: Any, names: Sequence[str], rest: _Rest
) -> tuple[dict[str, float], dict[str, float] | None, float | None, Any]:
    """Return (values, stds, cost, attrs) of a result of f if outcomes with these names were declared.

    Outcomes whose values are None or NaN are missing. Outcomes with other values that are not finite numbers, or with a
    misspelled name, have failed. If no outcome has a value, the result is invalid.
    """
    value, std, cost, attrs = returned, None, None, None
    if _is_long(returned, names):
        value, std, cost, attrs = _entries(returned, rest, names)
    if len(names) == 1 and not isinstance(value, Mapping):
        value = {names[0]: value}
    if not isinstance(value, Mapping) or not value:
        example = ", ".join(f"{name!r}: 0.5" for name in names)
        raise _Unusable(
            f", and outcomes are declared: return a mapping of the values that are known, such as {{{example}}}"
        )
    facts = dict(zip(_FACTS, (std, cost, attrs), strict=True))
    # The std, the cost and the attrs may also stand beside the outcomes, unless these are outcomes.
    beside = {key for key in _FACTS if key in value and key not in names and facts[key] is None}
    std, cost, attrs = (value[key] if key in beside else fact for key, fact in facts.items())
    others = {name: entry for name, entry in value.items() if name not in names and name not in beside}
    absent = [name for name in names if name not in value]
    misnamed = _misnamed(others, absent)
    further = {name: entry for name, entry in others.items() if name not in misnamed.values()}
    rest.keep(further, absent, f"declare {_names(further)} as outcomes with bl.Record()")
    rest.entries |= others
    rest.absent = tuple(absent) if others else ()
    given = {name: entry for name, entry in value.items() if name in names}
    if not given:
        meant = f": did you mean {next(iter(misnamed))!r}?" if misnamed else ""
        raise _Unusable(f" with {_names(value)}, and none of the outcomes {list(names)} is in the result{meant}")
    values, problems = {}, {}
    for name, entry in given.items():
        number = _number(entry)
        if number is not None:
            values[name] = number
        elif not is_gap(_single(entry)):
            problems[name] = f" with {name}={one_line(entry)}, which is not one finite number"
    for name, wrong in misnamed.items():
        problems[name] = (
            f" with {one_line(wrong)}, which was not declared: did you mean {name!r}? Return {name}=None if it is "
            "measured later, and further data as attrs={...}"
        )
    rest.failed = tuple(problems)
    rest.problems += problems.values()
    if not values:
        nothing = ", in which no outcome has a value: the evaluation counts as failed"
        raise _Unusable(" and".join(rest.problems) or nothing)
    missing = [name for name in given if name not in values and name not in problems]
    if missing:
        rest.notes["missing"] = (
            f"f returned {missing[0]}={one_line(given[missing[0]])}, so {missing} of this trial are missing and the "
            "trial stays pending: report them by observe when they are known, or end the trial by fail or abandon"
        )
    stds = std if isinstance(std, Mapping) else dict.fromkeys(values, std)
    without = [name for name in stds if name not in given]
    if without:
        rest.notes["std"] = f"f returned a std of {_names(without)} and no value of an outcome of this name"
    amounts = {name: _amount(f"std of {name}", entry, rest) for name, entry in stds.items() if name in values}
    known = {name: amount for name, amount in amounts.items() if amount is not None}
    return values, known or None, _amount("cost", cost, rest), attrs


def _amount(name: str, given: Any, rest: _Rest) -> float | None:
    """Return a std or cost as a float, or None for None.

    NaN and infinity also count as not given, because the value may be expensive, with a note.
    """
    if given is None:
        return None
    amount = _number(given)
    if amount is None:
        single = _single(given)
        if is_gap(single) or real_number(single) == math.inf:
            rest.notes["not given"] = f"f returned {name}={one_line(given)}, which counts as not given"
            return None
    if amount is None or amount < 0:
        raise _Unusable(f" with {name}={one_line(given)}, which is not a finite number >= 0")
    return amount


def _pair(returned: Any) -> tuple[Any, Any] | None:
    """Return the two numbers in a tuple, list, array or tensor of two numbers; return None for other objects."""
    is_array = getattr(returned, "shape", None) == (2,) and hasattr(returned, "tolist")
    entries = returned.tolist() if is_array else returned
    if not isinstance(entries, (tuple, list)) or len(entries) != 2:
        return None
    first, second = entries
    return None if real_number(first) is None or real_number(second) is None else (first, second)


def _single(value: Any) -> Any:
    """Return the element of an array or tensor with one element; return other objects unchanged."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape and all(size == 1 for size in shape) and hasattr(value, "item"):
        return value.item() if not isinstance(value, np.ndarray) else value.reshape(())
    return value


def _number(value: Any) -> float | None:
    """Return a number, or the element of an array or tensor with one element, as a float.

    Return None for other objects and for numbers that are not finite.
    """
    return finite(_single(value))

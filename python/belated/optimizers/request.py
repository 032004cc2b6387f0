"""The arguments of calls that write to a log, kept as they were given until the log is up to date.

A call of `suggest` is a *request*, and a call of any other method that writes is a *submission*. Both have the number
of the problem in which their names and values are read. A study converts them while it holds the write lock. A plain
optimizer converts the arguments at once, with the same functions, because its log is always up to date.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias, TypedDict

from belated._core import InvalidPoint, InvalidSetting, TrialRecord
from belated.optimizers.fixed import Fixed, Shared, fixed_of, shared_of
from belated.optimizers.problem import Problem
from belated.short_repr import short_repr
from belated.space.arguments import is_gap, is_list, real_number, whole_number
from belated.space.space import Place


class SuggestOptions(TypedDict, total=False):
    """The keyword arguments of `Optimizer.suggest`, for type checkers."""

    fidelity: float | None
    fixed: Mapping[Any, Any] | None
    shared: Sequence[Any] | None
    attrs: Any


class StudySuggestOptions(SuggestOptions, total=False):
    """The keyword arguments of `Study.suggest`, for type checkers."""

    key: str | None
    expires_after: float | timedelta | None


class Request(NamedTuple):
    """The arguments of a call of `suggest`, as they were given.

    `revision` is the number of the problem in which they are read, from 1; None stands for the present problem.
    """

    n: int
    context: Any = None
    fidelity: Any = None
    fixed: Any = None
    shared: Any = None
    expires_after: float | None = None
    revision: int | None = None

    def digest(self, by: str | None = None) -> str:
        """Return a text that is equal for equal requests of an author. The lease and the revision do not count."""
        shared = (sorted(set(map(_name, self.shared))) or None) if is_list(self.shared) else self.shared
        fixed = None if isinstance(self.fixed, Mapping) and not self.fixed else _plain(self.fixed, is_ordered=False)
        return _digest("suggest", self.n, self.context, self.fidelity, fixed, shared, *_known(by))

    def read_in(self, problem: Problem) -> "ReadRequest":
        """Return the arguments in the form that the core takes."""
        return read_request(problem, self.context, self.fidelity, self.fixed, self.shared)


# The context, the fidelity, and the fixed and shared values of a request in the form that the core takes.
ReadRequest: TypeAlias = tuple[list[float] | None, float | None, Fixed | None, Shared | None]


def number_of_trials(n: Any) -> int:
    """Return the argument `n` of `suggest`, or raise InvalidSetting."""
    wanted = whole_number(n)
    if wanted is None or not 0 <= wanted < 2**32:
        raise InvalidSetting(
            f"n={short_repr(n)} is not usable: pass an integer from 0 to 2**32 - 1, or None for one trial"
        )
    return wanted


def read_request(problem: Problem, context: Any, fidelity: Any, fixed: Any, shared: Any) -> ReadRequest:
    """Return arguments of `suggest` in the form that the core takes."""
    numbers, checked = problem.context_numbers(context), problem.check_fidelity(fidelity)
    if fixed is None and shared is None:  # the most frequent case
        return numbers, checked, None, None
    return numbers, checked, fixed_of(problem, fixed), shared_of(problem, shared)


class Facts(NamedTuple):
    """The data that are reported with a value, as they were given."""

    std: Any = None
    cost: Any = None
    duration: Any = None
    params: Any = None
    attrs: Any = None


class ObserveArguments(NamedTuple):
    """The arguments of `observe` after the trial, as they were given."""

    value: Any
    facts: Facts
    fidelity: Any = None
    amend: bool = False
    replicate: bool = False


class Submission(NamedTuple):
    """A report on a trial, or new points: the name of the method, the number of the trial, and the other arguments.

    `trial` is a list of numbers for `fail`, `abandon`, `withdraw` and `note`, and None for `add` and `enqueue`. `given`
    has the arguments as they were given, in the order in which the function for this verb in
    `belated.optimizers.actions` takes them. `revision` is the number of the problem in which they are read, from 1;
    None stands for the present problem.
    """

    verb: str
    trial: Any
    revision: int | None
    given: tuple[Any, ...] = ()

    def digest(self, by: str | None = None) -> str:
        """Return a text that is equal for equal submissions of an author.

        The duration and the attrs of a report of values do not count.
        """
        if self.verb == "enqueue":
            return _digest(self.verb, *self.given[:2], *_known(by))
        if self.verb != "observe":
            return _digest(self.verb, self.trial, *self.given, *_known(by))
        value, facts, *others = self.given
        value, std, params = map(_without_gaps, (value, facts.std, facts.params))
        std = None if std == {} else std
        return _digest(self.verb, self.trial, value, std, facts.cost, params, *others, *_known(by))


class Carrier(Protocol):
    """Carries what was read in one problem of a study to its present problem, as a revision carries earlier trials.

    What cannot be carried raises an error that names the revision.
    """

    #: The present problem.
    problem: Problem

    def point(self, place: Place, record: TrialRecord) -> Place | None:
        """Return the point at which a trial was run; None if it is the suggested point."""

    def start(self, place: Place, context: list[float] | None) -> tuple[Place, list[float] | None]:
        """Return the point and the context of a new trial."""

    def part(self, values: Mapping[str, Any], is_complete: bool) -> dict[str, Any]:
        """Return values of an enqueued point by flat name; `is_complete` if no value is missing."""

    def row(self, place: Place) -> Place:
        """Return an enqueued candidate without names."""

    def fidelity(self, value: float | None) -> float | None:
        """Return a fidelity in the user's units; None stands for a problem without fidelities."""

    def has_fidelity(self, value: float | None, record: TrialRecord) -> bool:
        """Return whether a trial was started at a fidelity."""

    def outcome(self, name: str) -> int:
        """Return the position of an outcome."""

    def outcomes(self, names: Sequence[str]) -> dict[str, int]:
        """Return the positions of those outcomes that still exist, by name; an error is raised if none exists.

        An empty name stands for the value of a problem without outcomes.
        """

    def check_step(self, step: int) -> None:
        """Check that the present curve has a step."""

    def refusal(self, error: InvalidPoint) -> InvalidPoint:
        """Return the error about a point that was carried, with the numbers of the revisions."""


def _known(by: str | None) -> tuple[str, ...]:
    return () if by is None else (by,)


def _digest(*arguments: Any) -> str:
    text = json.dumps([_plain(each) for each in arguments], separators=(",", ":"))
    return blake2b(text.encode(errors="backslashreplace"), digest_size=8).hexdigest()


def _without_gaps(given: Any) -> Any:
    """Return a mapping without its missing values, and other arguments unchanged."""
    if hasattr(given, "to_dict"):  # a Series
        given = given.to_dict()
    return {key: each for key, each in given.items() if not is_gap(each)} if isinstance(given, Mapping) else given


def _name(given: Any) -> str:
    """Return a name as text. In JSON, the number of a column is a text."""
    number = whole_number(given)
    return str(given if number is None else number)


def _plain(given: Any, is_ordered: bool = True) -> Any:
    """Return an argument as JSON data that are equal for equal arguments: 1 equals 1.0, and differs from True.

    Unless `is_ordered`, the order of lists does not count, and a list of one value equals the value.
    """
    if given is None or isinstance(given, (bool, str)):
        return given
    if isinstance(given, Mapping) and given.keys() == {"low", "high"}:
        given = (given["low"], given["high"])  # a range, as JSON has it
    if isinstance(given, Mapping):
        named = [(_name(key), _plain(each, is_ordered)) for key, each in given.items()]
        return {"mapping": sorted(named, key=lambda pair: pair[0])}
    if isinstance(given, tuple):  # a range, or a choice
        return {"tuple": [_plain(each) for each in given]}
    if is_gap(given):
        return None
    number = real_number(given)
    if number is not None:
        return number + 0.0 if number == given else repr(given)
    if hasattr(given, "to_dict"):  # a Series
        return _plain(given.to_dict())
    if not is_list(given):
        return repr(given)
    listed = [_plain(each) for each in given]
    if is_ordered:
        return listed
    listed = [json.loads(text) for text in sorted(set(map(json.dumps, listed)))]
    return listed[0] if len(listed) == 1 else listed

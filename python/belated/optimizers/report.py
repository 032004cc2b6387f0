"""Checks and conversions of the data that are reported about a trial: cost, duration, attributes and errors."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from belated._core import InvalidValue
from belated.short_repr import short_repr
from belated.space.arguments import finite, in_seconds, is_gap, is_list, one_line, real_number, whole_number
from belated.warn import warn

if TYPE_CHECKING:
    from traceback import TracebackException

# The maximum lengths of a stored message and a stored traceback, in bytes of UTF-8.
_LONGEST_MESSAGE = 2048
_LONGEST_TRACEBACK = 8192

# The maximum nesting depth of attributes. The core reads JSON of at most 127 levels.
_DEEPEST = 100

#: The end of warnings about attributes that are not JSON data.
ATTRS_AS_TEXT = "the report is stored, with None for NaN and infinite numbers and with text for other objects"


@dataclass(frozen=True, slots=True)
class TrialError:
    """The error that caused the failure of a trial; it is printed as ``"type: message"``.

    Attributes
    ----------
    type : str
        The name of the exception's class; empty if the error was reported as a string.
    message : str
        The exception's message, or the string. A text of more than 2 kB is shortened to its first 1.5 kB and its end.
    traceback : str or None
        The last 8 kB of the exception's traceback, if it had one.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    >>> trial = optimizer.suggest()
    >>> optimizer.fail(trial, error=ZeroDivisionError("division by zero"))
    >>> print(trial.error)
    ZeroDivisionError: division by zero
    """

    type: str
    message: str
    traceback: str | None = None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.type, self.message) if part)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A result that was taken back; see `Trial.withdrawal`.

    Attributes
    ----------
    state : str
        The state before the withdrawal: "observed", "failed" or "stopped".
    value : float or None
        The withdrawn value of an observed trial.
    reason : str or None
        The reason that was passed to `withdraw`.
    at : datetime or None
        The wall-clock time of the withdrawal (UTC); None if it is not known.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    >>> trial = optimizer.suggest()
    >>> trial.observe(54.0)
    >>> trial.withdraw(reason="contaminated flask")
    >>> trial.withdrawal.value, trial.withdrawal.reason
    (54.0, 'contaminated flask')
    """

    state: str
    value: float | None
    reason: str | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark about a trial; see `Trial.remarks`.

    Attributes
    ----------
    text : str
        The text that was passed to `note`.
    at : datetime or None
        The wall-clock time of the remark (UTC); None if it is not known.
    by : str or None
        The author; None if it is not known. See `Study.as_user`.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    >>> trial = optimizer.suggest()
    >>> trial.note("cloudy")
    >>> [remark.text for remark in trial.remarks]
    ['cloudy']
    """

    text: str
    at: datetime | None
    by: str | None = None


def as_text(name: str, text: Any) -> str | None:
    """Return the argument `reason` of `withdraw`, or `remark` of `note`, in the form in which it is stored."""
    if text is None or isinstance(text, str):
        return None if text is None else shortened(text)
    raise InvalidValue(f"{name}={short_repr(text)} is not usable: pass a string, or leave it out (nothing was changed)")


def headline(error: TrialError) -> str:
    """Return the first line of an error, shortened to 100 characters, for tables and reprs."""
    line = next(iter(str(error).splitlines()), "")
    return line if len(line) <= 100 else line[:99] + "…"


def error_facts(error: Any) -> tuple[str, str, str | None] | None:
    """Convert the argument `error` of `fail` to (type, message, traceback). None stays None."""
    if error is None:
        return None
    if isinstance(error, TrialError):
        kind, message, trace = error.type, error.message, error.traceback
    elif isinstance(error, str):
        kind, message, trace = "", error, None
    elif isinstance(error, BaseException):
        kind, message = type(error).__name__, _or_reason(lambda: str(error), "its message")
        has_trace = error.__traceback__ is not None or error.__cause__ is not None
        trace = format_traceback(error) if has_trace else None
    else:
        raise InvalidValue(
            f"error={short_repr(error)} is not usable: pass the exception, or a string that says what went wrong "
            "(nothing was changed)"
        )
    if trace is not None:
        trace = _cut(trace, _LONGEST_TRACEBACK, 0.0, "(only the end is kept) …\n")
    return _encodable(kind), shortened(message), trace


def _or_reason(text: Callable[[], str], what: str) -> str:
    """Return a text of an exception; if computing the text raises another error, return a text that states this."""
    try:
        return text()
    except Exception as raised:
        return f"({what} raised {type(raised).__name__})"


class TracebackText(Exception):
    """An exception that is set as the cause of an error without frames, and shows the error's traceback as text."""

    def __str__(self) -> str:
        return f"in a worker:\n\n{self.args[0]}"


def format_traceback(error: BaseException) -> str:
    """Return the traceback of an error as Python prints it, with long messages shortened."""
    cause = error.__cause__
    if isinstance(cause, TracebackText):
        return str(cause.args[0])
    return _or_reason(lambda: "".join(_short_form(error).format()), "formatting it")


def format_error(error: BaseException) -> str:
    """Return the type and the message of an error as in the last line of a traceback; a long message is shortened."""
    return "".join(_short_form(error).format_exception_only()).strip()


def _short_form(error: BaseException) -> "TracebackException":
    from traceback import TracebackException

    made = TracebackException.from_exception(error)
    waiting: list[Any] = [made]
    while waiting:
        each = waiting.pop()
        # Shorten messages first: Python formats a message line by line, which takes half a minute for 50 MB of text.
        if isinstance(getattr(each, "_str", None), str):
            each._str = shortened(each._str)
        others = (each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ()))
        waiting += [other for other in others if other is not None]
    return made


def _encodable(text: str) -> str:
    """Escape the characters that UTF-8 cannot encode. Such characters may occur in file names in messages."""
    return text.encode(errors="backslashreplace").decode()


def shortened(text: str) -> str:
    """Return text, shortened if it is longer than 2 kB in UTF-8.

    A longer text is shortened to its first 1.5 kB and its last 0.5 kB.
    """
    return _cut(text, _LONGEST_MESSAGE, 0.75, f" … ({len(text)} characters in all) … ")


def _cut(text: str, longest: int, share: float, mark: str) -> str:
    """Return text in at most `longest` bytes of UTF-8; a mark replaces the middle of a longer text.

    The fraction `share` of these bytes is used for the beginning of the text.
    """
    data = text.encode(errors="backslashreplace")
    if len(data) <= longest:
        return data.decode()
    room = longest - len(mark.encode())
    n_first = round(share * room)
    first, last = data[:n_first], data[len(data) - (room - n_first) :]
    return first.decode(errors="ignore") + mark + last.decode(errors="ignore")


# The conversions of numbers, whose ranges the core checks. `what` is the name of the trial, for messages.


def as_index(name: str, given: Any, least: int, what: str) -> int:
    """Return a step or an attempt as an int of 32 bits."""
    index = whole_number(given)
    if index is None or not 0 <= index < 2**32:
        raise _unusable(name, given, what, f"an integer >= {least}")
    return index


def as_number(name: str, given: Any, what: str) -> float:
    """Return a value, std, cost or duration as a float."""
    number = real_number(in_seconds(given) if name == "duration" else given)
    if number is None:
        other = "report a crash with fail" if name == "value" else "leave it out"
        raise _unusable(name, given, what, f"one finite number, or {other}")
    return number


def as_amount(name: str, given: Any, what: str, warn_once: Callable[[str, str], None]) -> float | None:
    """Return a std, cost or duration as a float; None if it is not given.

    NaN counts as not given, with a warning: for example, the standard deviation of a single replicate is NaN.
    """
    if given is None or (type(given) is float and given == given):  # the most frequent cases
        return given
    if is_gap(given):
        warn_once("not given", f"{name}={one_line(given)} for {what} counts as not given")
        return None
    return as_number(name, given, what)


def _unusable(name: str, given: Any, what: str, expected: str) -> InvalidValue:
    return InvalidValue(f"{name}={one_line(given)} for {what} is not usable: pass {expected} (nothing was changed)")


def attrs_as_json(attrs: Any, name: str = "attrs") -> str | None:
    """Return attributes as the text of a JSON object, or None if they are empty or None.

    Warn if the attributes are not JSON data. Attributes never prevent a report, because the reported value may be
    expensive.
    """
    data, problem = usable_attrs(attrs, name)
    if problem:
        warn(f"{problem}; {ATTRS_AS_TEXT}")
    return json.dumps(data, allow_nan=False) if data else None


def usable_attrs(attrs: Any, name: str = "attrs") -> tuple[dict[str, Any], str]:
    """Return attributes as JSON data, and what is wrong with them; the text is empty if they are JSON data.

    Numbers that are not finite become None, arrays become lists, and other objects become texts of at most 2 kB.
    """
    try:
        if attrs is None:
            return {}, ""
        if not isinstance(attrs, Mapping):
            return {}, f"{name}={one_line(attrs)} is not a mapping: pass a dict with strings for keys"
        # The round trip through JSON replaces objects of derived classes, which another process may not be able to
        # read.
        return json.loads(json.dumps(_as_json(attrs, name, 0), allow_nan=False)), ""
    except InvalidValue as error:
        problem = str(error)
    except Exception as error:
        problem = f"{name} cannot be read ({type(error).__name__})"
    data: dict[str, Any] = {}
    with suppress(Exception):
        for key, value in attrs.items():
            try:
                data[_text(key)] = json.loads(json.dumps(_nearest_json(value, 0), allow_nan=False))
            except Exception:
                data[_text(key)] = _text(value)
    return data, problem


def _nearest_json(value: Any, depth: int) -> Any:
    """Return the JSON data that is closest to a value."""
    if depth > _DEEPEST:
        raise RecursionError
    if hasattr(value, "tolist"):  # a NumPy array or number
        value = value.tolist()
    if value is None or isinstance(value, bool) or (isinstance(value, int) and finite(value) is not None):
        return value
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Mapping):
        return {_text(key): _nearest_json(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_nearest_json(each, depth + 1) for each in value]
    return _text(value)


def _text(value: Any) -> str:
    """Return an object as a text of at most 2 kB that UTF-8 can encode; a string is not shortened."""
    if isinstance(value, str):
        return _encodable(value)
    return shortened(_or_reason(lambda: str(value), "its text"))


def _as_json(value: Any, name: str, depth: int) -> Any:
    """Return a value in a form that json.dumps accepts; messages show `name`, such as `attrs['a'][0]`."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if depth > _DEEPEST:
        raise InvalidValue(f"{name[:60]}… is nested more than {_DEEPEST} levels deep: pass flatter data")
    if isinstance(value, str):
        if _encodable(value) == value:
            return value
    elif isinstance(value, (int, float)):
        if finite(value) is not None:
            return value
    elif isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or _encodable(key) != key:
                raise InvalidValue(f"{name} has the key {short_repr(key)}: pass a string for every key")
        return {key: _as_json(each, f"{name}[{key!r}]", depth + 1) for key, each in value.items()}
    elif isinstance(value, (list, tuple)):
        return [_as_json(each, f"{name}[{i}]", depth + 1) for i, each in enumerate(value)]
    raise InvalidValue(
        f"{name}={short_repr(value)} is not JSON data: pass None, booleans, finite numbers, strings, "
        "and lists or dicts of these; of an array its .tolist()"
    )


def merged_attrs(texts: Iterable[str]) -> dict[str, Any]:
    """Merge reports of attributes, each in JSON; if a key occurs in several reports, its last value is kept."""
    attrs: dict[str, Any] = {}
    for text in texts:
        attrs |= json.loads(text)
    return attrs


def attrs_of_trials(attrs: Any, n: int) -> list[str | None]:
    """Return the attributes of n trials as JSON; `attrs` is one mapping for all trials, or a list of n mappings."""
    if attrs is None:
        return []
    each = list(attrs) if is_list(attrs) else [attrs] * n
    if len(each) != n:
        raise InvalidValue(f"attrs has {len(each)} entries for {n} trials: pass one mapping for each, or one for all")
    return [attrs_as_json(one, f"attrs[{i}]" if is_list(attrs) else "attrs") for i, one in enumerate(each)]

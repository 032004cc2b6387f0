"""Reading the facts reported about a trial: cost and duration, attributes and errors."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belated._core import InvalidValue
from belated.short_repr import short_repr
from belated.space.arguments import finite

if TYPE_CHECKING:
    from traceback import TracebackException

# The longest message and traceback that are kept, in bytes of UTF-8.
_LONGEST_MESSAGE = 2048
_LONGEST_TRACEBACK = 8192

# The core reads JSON with at most 127 levels.
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class TrialError:
    """The error that made a trial fail; it prints as ``"type: message"``.

    Attributes
    ----------
    type : str
        The name of the exception's class; empty if the error was reported as a string.
    message : str
        The exception's message, or the string. If it is longer than 2 kB, the first 1.5 kB and the end.
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


def headline(error: TrialError) -> str:
    """The first line of an error, shortened, for tables and reprs."""
    line = next(iter(str(error).splitlines()), "")
    return line if len(line) <= 100 else line[:99] + "…"


def error_facts(error: Any) -> tuple[str, str, str | None] | None:
    """Return (type, message, traceback) of an error that was given to `fail`, or None if none was given."""
    if error is None:
        return None
    if isinstance(error, TrialError):
        kind, message, trace = error.type, error.message, error.traceback
    elif isinstance(error, str):
        kind, message, trace = "", error, None
    elif isinstance(error, BaseException):
        kind, message, trace = type(error).__name__, _message(error), _traceback(error)
    else:
        raise InvalidValue(
            f"error={short_repr(error)} is not usable: pass the exception, or a string that says what went wrong "
            "(nothing was changed)"
        )
    return _encodable(kind), shortened(message), None if trace is None else _end(_encodable(trace))


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as raised:
        return f"(its message raised {type(raised).__name__})"


def _traceback(error: BaseException) -> str | None:
    if error.__traceback__ is None and error.__cause__ is None:
        return None
    try:
        return format_traceback(error)
    except Exception as raised:
        return f"(formatting it raised {type(raised).__name__})"


def format_traceback(error: BaseException) -> str:
    """Return the traceback of an error as Python prints it, with long messages shortened."""
    return "".join(_short_form(error).format())


def format_error(error: BaseException) -> str:
    """Return the last line of a traceback: the type and the message, shortened if it is long."""
    return "".join(_short_form(error).format_exception_only()).strip()


def _short_form(error: BaseException) -> "TracebackException":
    from traceback import TracebackException

    made = TracebackException.from_exception(error)
    waiting: list[Any] = [made]
    while waiting:
        each = waiting.pop()
        # Python formats a message line by line, which takes half a minute for 50 MB of them.
        if isinstance(getattr(each, "_str", None), str):
            each._str = shortened(each._str)
        others = (each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ()))
        waiting += [other for other in others if other is not None]
    return made


def _encodable(text: str) -> str:
    """Return the text if it is valid UTF-8, else with escapes: a message may quote a file name that is not."""
    return text.encode(errors="backslashreplace").decode()


def shortened(text: str) -> str:
    """Return text up to 2 kB of UTF-8 unchanged, and of longer text the first three quarters and the end of 2 kB."""
    if len(text) <= _LONGEST_MESSAGE:
        text = _encodable(text)
        if len(text.encode()) <= _LONGEST_MESSAGE:
            return text
    mark = f" … ({len(text)} characters in all) … "
    room = _LONGEST_MESSAGE - len(mark.encode())
    n_end = room // 4
    # Characters have at least one byte each.
    first, last = (_encodable(part).encode() for part in (text[: room - n_end], text[-n_end:]))
    return first[: room - n_end].decode(errors="ignore") + mark + last[-n_end:].decode(errors="ignore")


def _end(text: str) -> str:
    data = text.encode()
    if len(data) <= _LONGEST_TRACEBACK:
        return text
    mark = "(only the end is kept) …\n"
    return mark + data[len(data) - _LONGEST_TRACEBACK + len(mark.encode()) :].decode(errors="ignore")


def check_amount(name: str, amount: Any, what: str) -> float | None:
    """Return a cost or duration of an evaluation, or None if it is not known; `what` names the trial in messages."""
    number = None if amount is None else finite(amount)
    if amount is not None and (number is None or number < 0):
        unit = "the seconds that the evaluation took" if name == "duration" else "what the evaluation cost"
        raise InvalidValue(
            f"{name}={short_repr(amount)} for {what} is not a finite number >= 0; pass {unit}, or leave it out "
            "(nothing was changed)"
        )
    return number


def attrs_as_json(attrs: Any, name: str = "attrs") -> str | None:
    """Return attributes as the text of a JSON object, or None if there are none."""
    if attrs is None:
        return None
    if not isinstance(attrs, Mapping):
        raise InvalidValue(
            f"{name}={short_repr(attrs)} is not a mapping: pass a dict with strings for keys (nothing was changed)"
        )
    return json.dumps(_as_json(attrs, name, 0), allow_nan=False) if attrs else None


def _as_json(value: Any, name: str, depth: int) -> Any:
    """Return a value in a form that json.dumps takes; `name` is its position in the argument."""
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
                raise InvalidValue(
                    f"{name} has the key {short_repr(key)}: pass a string for every key (nothing was changed)"
                )
        return {key: _as_json(each, f"{name}[{key!r}]", depth + 1) for key, each in value.items()}
    elif isinstance(value, (list, tuple)):
        return [_as_json(each, f"{name}[{i}]", depth + 1) for i, each in enumerate(value)]
    raise InvalidValue(
        f"{name}={short_repr(value)} is not JSON data: pass None, booleans, finite numbers, strings, "
        "and lists or dicts of these; of an array its .tolist() (nothing was changed)"
    )


def merged_attrs(texts: Iterable[str]) -> dict[str, Any]:
    """Merge attributes that came one after another, as JSON; later ones replace earlier ones."""
    attrs: dict[str, Any] = {}
    for text in texts:
        attrs |= json.loads(text)
    return attrs

"""Cells of tables: what a file contains for a value, and which value a cell of a file means.

CSV files store values as text, and Excel stores numbers with 16 digits. pandas reads texts such as "01" as numbers, and
texts such as "NA" as missing values. A cell that several choices of a parameter may have written is therefore refused.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

from belated._core import InvalidSpace, InvalidValue
from belated.short_repr import short_repr
from belated.space.arguments import finite, number_in_text, real_number
from belated.space.dimensions import Dimension, choices_of
from belated.space.fidelity import Fidelity

# Cells that pandas.read_csv reads as missing values, like empty cells.
_READ_AS_MISSING = frozenset(
    ["#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"]
    + ["NULL", "NaN", "None", "n/a", "nan", "null"]
)

# Number of digits of a number that a file preserves. pandas may read further digits with an error.
_DIGITS = 14

# A duration in days, hours, minutes and seconds.
_DURATION = re.compile(r"(-)?(?:(\d+) days?,? \+?)?(\d+):([0-5]?\d):([0-5]?\d(?:\.\d+)?)")

# Characters with which a formula begins; some spreadsheets also read the full-width forms.
_FORMULA = "=+-@\t\n\uff1d\uff0b\uff0d\uff20"

# Characters that Excel's files cannot contain, and further control characters, which terminals execute.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")

# A number with one comma or point. The three digits after the first kind of number may be thousands.
AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}")
DECIMAL = re.compile(r"[+-]?\d*([.,])\d*(?:[eE][+-]?\d+)?")

# Patterns of texts that are not read as numbers, and the reasons.
_NOT_NUMBERS = (
    (r"^$", "it is empty"),
    (r"%|\u2030", "it has a percent sign: write a number in the unit of the outcome"),
    (r"^[<>\u2264\u2265\u2248~]", "it is a bound and not a measured number: report a failure, or write a remark"),
    (r"(?i)^[+-]?(nan|inf|infinity|n\.?d\.?|n/?a|null|none|-+)$", "it is not a finite number: leave the value out"),
    (r"[^\x00-\x7f]", "it has a character that is not an ASCII digit, sign, point or comma"),
    (r"_", "it has an underscore: write the number without"),
    (r"\d\s+\d", "it has a space inside: write the number without"),
    (r"[.,'].*[.,']", "it has several separators: write one for the decimals, and none for thousands"),
    (r"^[+-]?[\d.,]+(?:[eE][+-]?\d+)?\s*[^\d\s.,eE+-]", "it has a unit or another text: write only the number"),
)


class UnreadableCell:
    """A cell of a file without a usable content, such as an error of a spreadsheet; it is never an empty cell."""

    def __init__(self, content: str, reason: str) -> None:
        self.content, self.reason = content, reason

    def __repr__(self) -> str:
        return self.content


def as_read(value: Any) -> float | str | None:
    """Return a value as it is read from a CSV file.

    If two values have the same text in the file, this function returns equal results for them.
    """
    text = "" if value is None else str(value)
    if text == "" or text in _READ_AS_MISSING:
        return None
    if text.lower() in ("true", "false"):
        return text.lower()
    number = real_number(value)
    if number is None:
        number = number_in_text(text)
    if number is None:
        return text
    return float(f"{number:.{_DIGITS}g}")


def number_in(cell: Any) -> Any:
    """Return the number that a text contains; return other cells unchanged.

    pandas reads a column as texts if one of its cells is not a number.
    """
    if isinstance(cell, UnreadableCell):
        raise InvalidValue(f"{cell}: {cell.reason}")
    number = number_in_text(cell) if isinstance(cell, str) else None
    return cell if number is None else number


def readings_of(text: str) -> tuple[list[float], str | None]:
    """Return the numbers that a text of a person may be, and why it is not one number (None if it is one).

    A comma may separate decimals or thousands.
    """
    given = text.strip()
    number = number_in_text(given)
    if number is None and DECIMAL.fullmatch(given) is not None:
        number = number_in_text(given.replace(",", "."))
    if number is not None and isfinite(number):
        if "," in given and AMBIGUOUS.fullmatch(given) is not None:
            return [number, float(given.replace(",", ""))], "the comma may separate decimals or thousands"
        return [number], None
    reasons = (reason for pattern, reason in _NOT_NUMBERS if re.search(pattern, given))
    return [], next(reasons, "it is not a finite number: write a number such as 0.81")


def seconds_in(cell: Any) -> Any:
    """Return the seconds in a text such as "0 days 00:00:01.5", as pandas writes durations; other cells unchanged."""
    found = _DURATION.fullmatch(cell.strip()) if isinstance(cell, str) else None
    if found is None:
        return cell
    sign, days, hours, minutes, seconds = found.groups()
    total = 86400.0 * int(days or 0) + 3600.0 * int(hours) + 60.0 * int(minutes) + float(seconds)
    # pandas writes -1 s as "-1 days +23:59:59".
    return total - 2 * 86400.0 * int(days or 0) if sign and days else -total if sign else total


def in_range(dimension: Dimension | Fidelity | None, cell: Any) -> Any:
    """If a rounding error moved a number out of range, return the nearest bound. Return other cells unchanged."""
    low, high = getattr(dimension, "low", None), getattr(dimension, "high", None)
    if type(cell) is float and low is not None and high is not None and low <= cell <= high:
        return cell  # the most frequent case
    number = finite(cell)
    if number is None or low is None or high is None or low <= number <= high:
        return cell
    end = low if number < low else high
    return end if _is_close(number, end) else cell


def _is_close(number: float, exact: float) -> bool:
    """Return whether two numbers differ at most by the rounding error of a file."""
    return number == exact or abs(number - exact) <= abs(exact) * 10.0**-_DIGITS


def choice_in(dimension: Dimension, what: str, cell: Any) -> Any:
    """Return the choice that a cell means. If there is none, return the cell, which the space later refuses.

    `what` is the parameter, for messages.
    """
    if isinstance(cell, UnreadableCell):
        raise InvalidValue(f"{what}={cell}: {cell.reason}")
    choices = choices_of(dimension)
    assert choices is not None
    readings = [cell]
    if isinstance(cell, str) and cell.startswith("'"):
        readings.append(cell[1:])  # the user protected the text from being read as a formula
    # pandas reads Excel's booleans as numbers if the column has empty cells.
    flag = bool(cell) if isinstance(cell, (float, int)) and cell in (0, 1) else None
    for reading in readings:
        written = _as_written(reading)
        alike = [choice for choice in choices if choice is flag is not None or _as_written(choice) == written]
        if len(alike) > 1:
            raise InvalidSpace(
                f"{what}={short_repr(cell)} may be any of the choices {alike}, which print alike: add the trials as "
                "dicts, or rename choices"
            )
        if alike:
            return alike[0]
    return cell


def _as_written(value: Any) -> float | str | None:
    """Return a value as it is read from a file that `to_csv` wrote."""
    return as_read(shown(value))


def text_in(cell: Any) -> Any:
    """Return a text without the apostrophe that `shown` adds; return other cells unchanged."""
    if isinstance(cell, UnreadableCell):
        raise InvalidValue(f"{cell}: {cell.reason}")
    is_marked = isinstance(cell, str) and cell.startswith("'") and shown(cell[1:]) == cell
    return cell[1:] if is_marked else cell


def shown(value: Any) -> Any:
    """Return the content of a cell in a file. Texts that a spreadsheet would execute get an apostrophe."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if value == value else None
    text = str(value).encode(errors="replace").decode()
    text = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\r", "\n"))
    if len(text) > 1 and text[0] in _FORMULA and isinstance(as_read(text), str):
        text = f"'{text}"
    return text

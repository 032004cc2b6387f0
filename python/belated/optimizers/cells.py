"""Cells of tables: what a file contains for a value, and which value a cell of a file means.

CSV files store values as text, and Excel stores numbers with 16 digits. pandas reads texts such as "01" as numbers, and
texts such as "NA" as missing values. Files that `to_csv` and `to_excel` write therefore have a column ``exact``. It
contains, as JSON, those values of the row that the other cells do not restore. If a cell was edited, it differs from
its entry in this column, and the cell is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from belated._core import InvalidSpace
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

# The longest text in a cell of Excel.
LONGEST_CELL = 32_767

# Characters with which a formula begins; some spreadsheets also read the full-width forms.
_FORMULA = "=+-@\t\n\uff1d\uff0b\uff0d\uff20"

# Characters that Excel's files cannot contain, and further control characters, which terminals execute.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")


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
    number = number_in_text(cell) if isinstance(cell, str) else None
    return cell if number is None else number


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
    choices = choices_of(dimension)
    assert choices is not None
    readings = [cell]
    if isinstance(cell, str) and cell.startswith("'"):
        readings.append(cell[1:])  # protected from being read as a formula
    if isinstance(cell, (float, int)) and cell in (0, 1):
        readings.append(bool(cell))  # pandas reads Excel's booleans as numbers if the column has empty cells
    for reading in readings:
        alike = [choice for choice in choices if as_read(choice) == as_read(reading)]
        if len(alike) > 1:
            raise InvalidSpace(
                f"{what}={short_repr(cell)} may be any of the choices {alike}, which print alike: write "
                "the file with to_csv or to_excel, add the trials as dicts, or rename choices"
            )
        if alike:
            return alike[0]
    return cell


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
    return text[:LONGEST_CELL]


def is_restored(value: Any) -> bool:
    """Return whether a number or a text is read from a file with the same bits or characters."""
    if isinstance(value, str):
        return shown(value) == value and as_read(value) == value and value.lower() not in ("true", "false")
    if isinstance(value, float):
        # pandas reads a number of at most 15 digits exactly, unless its exponent is large.
        is_zero = value == 0.0 and not math.copysign(1.0, value) < 0.0
        return is_zero or (1e-7 <= abs(value) < 1e15 and float(f"{value:.15g}") == value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53


def exact_choice(choices: Sequence[Any], value: Any) -> str | None:
    """Return the entry of a choice in the column ``exact``, or None if its cell determines the choice."""
    readings = [as_read(value)]
    if isinstance(value, bool):
        readings.append(float(value))  # see `choice_in`
    same = [choice for choice in choices if as_read(choice) in readings]
    unchanged = not isinstance(value, str) or shown(value) == value
    if len(same) == 1 and unchanged and (not isinstance(value, float) or is_restored(value)):
        return None
    return repr(value)


def choice_of_entry(choices: Sequence[Any], entry: Any, cell: Any) -> tuple[Any, ...]:
    """Return the choice of an entry of `exact_choice` in a tuple; an empty tuple if the cell was edited."""
    named = [choice for choice in choices if repr(choice) == entry]
    return tuple(named) if len(named) == 1 and agrees(cell, named[0]) else ()


def agrees(cell: Any, exact: Any) -> bool:
    """Return whether a cell is what a file contains for the value `exact`, up to rounding."""
    visible = shown(exact)
    if isinstance(visible, bool) and isinstance(cell, (bool, np.bool_, int, float)):
        return bool(cell == visible)
    numbers = real_number(number_in(cell)), real_number(number_in(visible))
    if numbers[0] is not None and numbers[1] is not None:
        return _is_close(numbers[0], numbers[1])
    if isinstance(cell, str) and isinstance(visible, str):
        return cell.replace("\r\n", "\n") == visible
    return as_read(cell) == as_read(visible)

"""Marked values: values that lie far outside the interval in which the model expected them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from belated._core import TrialRecord
from belated.optimizers.outcomes import Outcomes


class Marked(NamedTuple):
    """A value that was reported far outside the interval in which it was expected."""

    number: int
    outcome: str | None
    value: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """The text of the warning."""
        of = "" if self.outcome is None else f" of {self.outcome!r}"
        also = "" if self.outcome is None else f", outcome={self.outcome!r}"
        return (
            f"trial {self.number} has the value {self.value!r}{of}, and a value from {self.low:.4g} to {self.high:.4g} "
            f"was expected: it is stored and marked; amend or withdraw it if it is wrong, or call "
            f"confirm({self.number}{also})"
        )


def marked_values(outcomes: Outcomes, number: int, marks: Iterable[tuple[int, float, float, float]]) -> list[Marked]:
    """Return the marked values of an event, whose marks have the positions of outcomes."""
    return [Marked(number, _name(outcomes, i), value, low, high) for i, value, low, high in marks]


def marked_of(outcomes: Outcomes, record: TrialRecord) -> list[Marked]:
    """Return the values of a trial that are marked, and that nobody has confirmed."""
    values = _values(outcomes, record)
    marks = [(i, value, low, high) for i, low, high in record.marks if (value := values[i]) is not None]
    return marked_values(outcomes, record.number, marks)


def _values(outcomes: Outcomes, record: TrialRecord) -> Sequence[float | None]:
    return [facts[1] for facts in record.outcomes] if outcomes else [record.value]


def _name(outcomes: Outcomes, i: int) -> str | None:
    return list(outcomes)[i] if outcomes else None

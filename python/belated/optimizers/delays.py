"""The delay distribution of an optimizer, and forecasts of the results of trials in flight."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, NamedTuple

import numpy as np

from belated._core import DelayDistribution, InvalidValue
from belated.optimizers.trial import Trial
from belated.short_repr import short_repr
from belated.space.arguments import as_timedelta, finite, in_seconds, whole_number

# The longest time that the core accepts. A trial that does not arrive within this time counts as never arriving.
_FOREVER = 1e300

# The level of the interval that decides whether a trial is overdue. The level is high, because early in a study trials
# that are only late may look lost.
_OVERDUE_LEVEL = 0.98


class Estimate(NamedTuple):
    """An estimate with a central 80 % interval.

    `extrapolated` is true if the estimate depends on delays that are longer than the largest age of a trial.
    """

    estimate: float
    low: float
    high: float
    extrapolated: bool


class Overdue(NamedTuple):
    """A trial that is late and probably lost, its age, and the probability that its result ever arrives."""

    trial: Trial
    age: float
    arrives: Estimate


class InFlight(NamedTuple):
    """Columns of `trials_dataframe` for a trial in flight; see there."""

    age: float
    expected_remaining: float | None
    arrival_probability: float | None


class Forecast(NamedTuple):
    """The number of results that arrive up to a time, among the trials in flight. `str` returns a sentence.

    Attributes
    ----------
    by : float or None
        The time on the optimizer's clock. On the clock of iterations, results that are reported before the clock shows
        this number are counted.
    expected, low, high : float or None
        The expected number of results, and a central 80 % interval of this number. None if the delay distribution is
        unknown.
    n_pending : int
        Number of trials in flight.
    never : float or None
        The expected number of trials in flight whose results never arrive, because the trials fail or stay silent.
    unknown : str or None
        The reason for which the distribution is unknown.
    when : str
        The time, as text.
    """

    by: float | None
    expected: float | None
    low: float | None
    high: float | None
    n_pending: int
    never: float | None
    unknown: str | None
    when: str

    def __str__(self) -> str:
        if not self.n_pending:
            return "no results are pending"
        if self.expected is None or self.never is None:
            return f"{self.n_pending} pending, no forecast: {self.unknown}"
        text = f"{self.expected:.0f} of {self.n_pending} results by {self.when} ({self.low:.0f} to {self.high:.0f})"
        return text if round(self.never) == 0 else f"{text}, {self.never:.0f} probably never"


class Delays:
    """The delay distribution of an optimizer at a point in time; `delays_` of optimizers and studies returns it.

    The distribution is estimated from the trials that the optimizer suggested. Added trials do not have delays. The
    delay of an observed trial is its time from suggestion to observation, on the optimizer's clock. Trials in flight
    are censored at their age, and abandoned trials at the time when they were abandoned. A trial whose lease has passed
    is treated as if it were abandoned at the end of the lease. If a trial was run again, its delay starts at its
    suggestion, because the log does not store later starts. Negative delays, which occur if a clock was set back, are
    replaced by 0.

    Methods return an `Estimate`, or None if the distribution is unknown. The object does not change when further
    results arrive.

    Attributes
    ----------
    clock : {"iterations", "seconds"}
        The unit of delays. On the clock of iterations, a result that is reported before the next suggestion has delay
        1.
    now : float
        The time on the optimizer's clock.
    n_arrived, n_failed, n_pending, n_abandoned : int
        Numbers of suggested trials. Trials whose lease has passed count as abandoned.
    unknown : str or None
        The reason for which the distribution is unknown; None if a result has arrived.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    >>> optimizer.delays_.unknown
    'there are no trials'
    >>> for _ in range(12):
    ...     first, second = optimizer.suggest(n=2)
    ...     optimizer.observe(first, 0.5)
    >>> optimizer.delays_
    Delays(12 arrived, 0 failed, 12 pending, 0 abandoned, clock='iterations')
    >>> optimizer.delays_.quantile(0.5).estimate
    2.0
    >>> optimizer.delays_.arrival_probability(1).estimate < 0.2
    True
    >>> str(optimizer.forecast(by=30))
    '1 of 12 results by suggestion 30 (0 to 1), 11 probably never'
    """

    __slots__ = ("_distribution", "_in_flight", "clock", "now")

    def __init__(
        self,
        clock: Literal["iterations", "seconds"],
        now: float,
        distribution: DelayDistribution,
        in_flight: Mapping[int, float],
    ) -> None:
        self.clock, self.now = clock, now
        # The ages of trials in flight by number.
        self._distribution, self._in_flight = distribution, in_flight

    @property
    def unknown(self) -> str | None:
        """The reason for which the distribution is unknown; None if a result has arrived."""
        return self._distribution.unknown

    @property
    def n_arrived(self) -> int:
        """Number of suggested trials that were observed."""
        return self._distribution.counts[1]

    @property
    def n_failed(self) -> int:
        """Number of suggested trials that failed."""
        return self._distribution.counts[2]

    @property
    def n_pending(self) -> int:
        """Number of suggested trials in flight."""
        return len(self._in_flight)

    @property
    def n_abandoned(self) -> int:
        """Number of suggested trials that were abandoned, or whose lease has passed."""
        return self._distribution.counts[0] - self.n_pending

    def mean(self) -> Estimate | None:
        """Return the mean delay of trials that arrive. It is infinite if delays have a very long tail."""
        return _estimate(self._distribution.mean())

    def quantile(self, q: float) -> Estimate | None:
        """Return the quantile of the delays of trials that arrive, for 0 < q < 1."""
        share = finite(q)
        if share is None or not 0 < share < 1:
            raise InvalidValue(f"q={short_repr(q)} is not a share: pass a number between 0 and 1, such as 0.9")
        return _estimate(self._distribution.quantile(share))

    def arrival_probability(self, trial: Trial | int, within: float | timedelta | None = None) -> Estimate | None:
        """Return the probability that the result of a trial in flight arrives.

        Parameters
        ----------
        trial : Trial or int
            A trial in flight, or its number.
        within : float or timedelta, optional
            The time from now, on the optimizer's clock. Default None: at any time.

        Raises
        ------
        InvalidValue
            The trial is not in flight, or `within` is not a number >= 0.
        """
        age = self._age(trial)
        if within is None:
            return _estimate(self._distribution.arrives_ever(age))
        return _estimate(self._distribution.arrival_probability(age, self._duration("within", within)))

    def expected_remaining(self, trial: Trial | int) -> Estimate | None:
        """Return the median time until the result of a trial in flight arrives, given that it arrives.

        Raises
        ------
        InvalidValue
            The trial is not in flight.
        """
        return _estimate(self._distribution.remaining(self._age(trial)))

    def forecast(self, by: float | datetime | timedelta | None = None) -> Forecast:
        """Return the number of results that arrive up to a time; see `Optimizer.forecast`."""
        unknown = self.unknown
        if by is None:
            median = self.quantile(0.5)
            time = None if median is None else min(self.now + median.estimate, _FOREVER)
        else:
            time = self._time(by)
        when = "" if time is None else self._when(time, by)
        ages = np.array(list(self._in_flight.values()), dtype=float)
        if time is None or unknown is not None:
            return Forecast(time, None, None, None, len(ages), None, unknown, when)
        count = _estimate(self._distribution.count(ages, min(max(time - self.now, 0.0), _FOREVER)))
        assert count is not None  # the distribution is known
        never = len(ages) - sum(self._arrives(age) for age in ages)
        return Forecast(time, count.estimate, count.low, count.high, len(ages), max(never, 0.0), None, when)

    def overdue(self) -> list[tuple[int, float, Estimate]]:
        """Return (number, age, probability of arrival) of each overdue trial; see `Optimizer.overdue`."""
        limit = self.quantile(0.95)
        late = [] if limit is None else [item for item in self._in_flight.items() if item[1] > limit.estimate]
        found = []
        for number, age in late:
            arrives = _estimate(self._distribution.arrives_ever(age))
            assert arrives is not None  # the distribution is known
            certain = self._distribution.arrives_ever(age, _OVERDUE_LEVEL)
            assert certain is not None
            if certain[2] < 0.5:
                found.append((number, age, arrives))
        return sorted(found, key=lambda each: (each[2].estimate, each[0]))

    def _forecasts(self) -> dict[int, InFlight]:
        """Return the age and the forecast of each trial in flight, by number."""

        def estimates(age: float) -> list[float | None]:
            found = self._distribution.remaining(age), self._distribution.arrives_ever(age)
            return [None if each is None else each[0] for each in found]

        return {number: InFlight(age, *estimates(age)) for number, age in self._in_flight.items()}

    def _arrives(self, age: float) -> float:
        found = self._distribution.arrives_ever(age)
        return 0.0 if found is None else found[0]

    def _age(self, trial: Trial | int) -> float:
        number = trial.number if isinstance(trial, Trial) else whole_number(trial)
        if number is None or number not in self._in_flight:
            raise InvalidValue(
                f"trial={short_repr(trial)} is not in flight: pass a pending trial that was suggested, or its number"
            )
        return self._in_flight[number]

    def _duration(self, name: str, given: Any) -> float:
        """Convert a duration from now to the unit of the clock."""
        number = finite(in_seconds(given) if self.clock == "seconds" else given)
        if number is None or not 0 <= number <= _FOREVER:
            raise InvalidValue(f"{name}={short_repr(given)} is not usable: pass a number >= 0{self._or_time(False)}")
        return number

    def _time(self, by: Any) -> float:
        """Convert a time to the optimizer's clock."""
        by = as_timedelta(by)
        if isinstance(by, timedelta) and self.clock == "seconds":
            return self.now + self._duration("by", by)
        time = None
        with suppress(ValueError, OverflowError, OSError):  # of datetimes such as pandas.NaT and datetime.min
            time = finite(by.timestamp() if isinstance(by, datetime) and self.clock == "seconds" else by)
        if time is None or not self.now <= time <= _FOREVER:
            raise InvalidValue(
                f"by={short_repr(by)} is not usable: pass a time on the clock that is not before {self.now:.10g}"
                f"{self._or_time(True)}"
            )
        return time

    def _or_time(self, both: bool) -> str:
        if self.clock != "seconds":
            return ", counted in suggestions; forecast of the optimizer takes a datetime or a timedelta"
        return ", in seconds, a datetime or a timedelta" if both else ", in seconds, or a timedelta"

    def _when(self, time: float, by: Any) -> str:
        if self.clock == "iterations":
            return f"suggestion {time:g}"
        if isinstance(by, datetime):
            return f"{by:%Y-%m-%d %H:%M}"
        try:
            at = datetime.fromtimestamp(time, timezone.utc)
        except (OverflowError, ValueError, OSError):
            return f"second {time:g}"
        # A clock that does not start in 1970, such as a simulated clock, shows small numbers.
        return f"{at:%Y-%m-%d %H:%M} UTC" if at.year > 1970 else f"second {time:g}"

    def _data(self) -> tuple[Any, ...]:
        return self.clock, self.now, self._in_flight, *(column.tobytes() for column in self._distribution.records())

    def __eq__(self, other: object) -> bool:
        return self._data() == other._data() if isinstance(other, Delays) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.clock, self.now, *self._in_flight.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, (self.clock, self.now, self._distribution.records(), self._in_flight)

    def __repr__(self) -> str:
        return (
            f"Delays({self.n_arrived} arrived, {self.n_failed} failed, {self.n_pending} pending, "
            f"{self.n_abandoned} abandoned, clock={self.clock!r})"
        )


def _loaded(clock: Any, now: float, records: tuple[Any, Any], in_flight: Mapping[int, float]) -> Delays:
    return Delays(clock, now, DelayDistribution(*records, clock=clock), in_flight)


def _estimate(found: tuple[float, float, float, bool] | None) -> Estimate | None:
    return None if found is None else Estimate(*found)

"""A trial: one numbered point, its state, and the methods that report it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from belated.optimizers.report import TrialError, headline, merged_attrs

if TYPE_CHECKING:
    from belated.optimizers.life_cycle import LifeCycle


def html_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """An HTML table of the reprs of `rows` (strings as they are), everything escaped."""
    import html

    def line(cells: Sequence[Any], tag: str) -> str:
        texts = (cell if isinstance(cell, str) else repr(cell) for cell in cells)
        return "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>"


class Trial:
    """A trial of an optimizer.

    Trials come from ``suggest``, ``add`` and ``trials``; they are views that read the optimizer's
    log at each access, so they are never out of date. Two are equal when they have the same number in
    the same optimizer. A pickled trial takes its optimizer along: send a worker `params` (or `x`)
    and `number`, and report the value to the optimizer that suggested the trial.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.RandomSearch({"lr": bl.Real(1e-4, 1, log=True)}, seed=0)
    >>> trial = optimizer.suggest()
    >>> trial.state, trial.value, list(trial.params)
    ('pending', None, ['lr'])
    >>> trial.observe(0.25)
    >>> trial.state, trial.value
    ('observed', 0.25)
    """

    __slots__ = ("_owner", "number")

    def __init__(self, owner: LifeCycle[Any], number: int) -> None:
        self._owner = owner
        #: The trial's number, counted from 0.
        self.number = number

    @property
    def params(self) -> dict[str, Any] | Any:
        """Values by name; for candidates, which have no names, the row of shape (d,), as `x`."""
        record = self._owner._record_of(self)
        return self._owner._problem.domain.decode(record.point, record.index, record.given)

    @property
    def params_run(self) -> dict[str, Any] | Any:
        """As `params`, where it was really run, as reported; `params` if nothing else was reported."""
        run = self._owner._record_of(self).run
        return self.params if run is None else self._owner._problem.domain.decode(*run)

    @property
    def x(self) -> NDArray[Any] | None:
        """The candidate's row, shape (d,), as it was given; None in a space."""
        point = self.params
        return None if isinstance(point, dict) else point

    @property
    def index(self) -> int | None:
        """The candidate's row number; None in a space."""
        return self._owner._record_of(self).index

    @property
    def index_run(self) -> int | None:
        """The row number of the candidate that was really run; `index` if nothing else was reported."""
        record = self._owner._record_of(self)
        return record.index if record.run is None else record.run[1]

    @property
    def context(self) -> dict[str, Any] | None:
        """The context it was suggested in; None where none was declared."""
        contexts = self._owner._problem.context_space
        return None if contexts is None else contexts.decode(self._owner._record_of(self).context)

    @property
    def fidelity(self) -> Any:
        """How much of a full evaluation it is, in the units of the `Fidelity` declared; None where none was."""
        return self._owner._problem.decode_fidelity(self._owner._record_of(self).fidelity)

    @property
    def state(self) -> str:
        """``"pending"``, ``"observed"``, ``"failed"`` or ``"abandoned"``."""
        return self._owner._record_of(self).state

    @property
    def value(self) -> float | None:
        """The observed value, None until there is one."""
        value = self._owner._record_of(self).value
        return None if value is None else self._owner._problem.oriented(value)

    @property
    def std(self) -> float | None:
        """The standard deviation of the value's noise, where it was reported with it."""
        return self._owner._record_of(self).std

    @property
    def cost(self) -> float | None:
        """What the evaluation cost, where it was reported."""
        return self._owner._record_of(self).cost

    @property
    def duration(self) -> float | None:
        """The seconds that the evaluation took, where they were reported."""
        return self._owner._record_of(self).duration

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes that were reported, later ones merged over earlier ones; a copy."""
        return merged_attrs(self._owner._record_of(self).attrs)

    @property
    def error(self) -> TrialError | None:
        """The last error that was reported; None if it never failed, or failed without an error."""
        error = self._owner._record_of(self).error
        return None if error is None else TrialError(*error)

    @property
    def suggested_at(self) -> float:
        """When it started, on the optimizer's clock: in seconds, or in suggestions started."""
        return self._owner._record_of(self).suggested_at

    @property
    def observed_at(self) -> float | None:
        """When its value came, on the same clock; None until then."""
        return self._owner._record_of(self).observed_at

    @property
    def ended_at(self) -> float | None:
        """When it was observed, failed or abandoned, whichever was last, on the same clock; None while pending."""
        return self._owner._record_of(self).ended_at

    @property
    def expires_at(self) -> float | None:
        """When its lease ends, in seconds of the wall clock; None without one. See `Study.suggest`."""
        return self._owner._record_of(self).expires_at

    @property
    def delay(self) -> float | None:
        """From suggestion to observation, in seconds or in suggestions started; None until observed."""
        record = self._owner._record_of(self)
        return None if record.observed_at is None else record.observed_at - record.suggested_at

    def observe(
        self,
        value: float,
        *,
        std: float | None = None,
        cost: float | None = None,
        duration: float | None = None,
        params: Any = None,
        attrs: Mapping[str, Any] | None = None,
        fidelity: float | None = None,
        amend: bool = False,
        replicate: bool = False,
    ) -> None:
        """Report the value; see `Optimizer.observe`."""
        self._owner.observe(
            self,
            value,
            std=std,
            cost=cost,
            duration=duration,
            params=params,
            attrs=attrs,
            fidelity=fidelity,
            amend=amend,
            replicate=replicate,
        )

    def fail(self, *, error: BaseException | str | None = None, attrs: Mapping[str, Any] | None = None) -> None:
        """Report that it crashed; see `Optimizer.fail`."""
        self._owner.fail(self, error=error, attrs=attrs)

    def abandon(self) -> None:
        """Forget its point; see `Optimizer.abandon`."""
        self._owner.abandon(self)

    def _facts(self) -> dict[str, Any]:
        """The facts about the trial that have a value, in the order in which they are shown."""
        x, context, error = self.x, self.context, self.error
        record = self._owner._record_of(self)
        facts: dict[str, Any] = {"number": self.number}
        facts |= {"params": self.params} if x is None else {"index": self.index, "x": x}
        if record.run is not None:
            facts |= {"params_run": self.params_run} if x is None else {"index_run": self.index_run}
        known = {
            "context": context,
            "fidelity": self.fidelity,
            "state": record.state,
            "value": self.value,
            "std": record.std,
            "error": None if error is None else headline(error),
            "attrs": self.attrs or None,
        }
        return facts | {name: fact for name, fact in known.items() if fact is not None}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trial):
            return NotImplemented
        return self.number == other.number and self._owner._token == other._owner._token

    def __hash__(self) -> int:
        return hash((self._owner._token, self.number))

    def __repr__(self) -> str:
        return f"Trial({', '.join(f'{name}={fact!r}' for name, fact in self._facts().items())})"

    def _repr_html_(self) -> str:
        more = {"cost": self.cost, "duration": self.duration, "delay": self.delay}
        facts = self._facts() | {name: fact for name, fact in more.items() if fact is not None}
        return html_table(["Trial", ""], facts.items())


# Rows of the table that notebooks show of an optimizer or study.
_ROWS_SHOWN = 10


def trials_html(name: str, trials: Sequence[Trial], n_pending: int, best: Any) -> str:
    """The last trials as HTML, the latest first, with a caption."""
    import html

    rows = []
    for trial in reversed(trials[-_ROWS_SHOWN:]):
        error = trial.error
        point = trial.params if trial.index is None else trial.index
        facts = (point, trial.context, trial.state, trial.value, error and headline(error))
        rows.append([trial.number] + ["" if fact is None else fact for fact in facts])
    caption = f"{name}: {len(trials)} trials, {n_pending} pending, best {best}"
    table = html_table(["number", "point", "context", "state", "value", "error"], rows)
    return f"<p>{html.escape(caption)}</p>{table}"

"""The times of suggestions and evaluations of a run, and advice if workers mostly wait for suggestions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from belated.optimizers.optimizer import Optimizer
from belated.space.candidates import Candidates, NamedCandidates
from belated.study.study import Study

# Advice is given after this number of seconds of suggestions, if they took more than half of the time of the run and
# workers were idle for more than half of it. A shorter run would hardly become faster.
_LEAST = 30.0


@dataclass
class Pace:
    """The seconds that a run spends on suggestions and evaluations."""

    n_workers: int
    start: float = field(default_factory=lambda: monotonic())
    #: The number of suggestions, their seconds, and the seconds for which f ran in finished evaluations.
    n_suggested: int = 0
    suggesting: float = 0.0
    n_finished: int = 0
    evaluating: float = 0.0
    #: The time at which each running evaluation was submitted, by trial number.
    submitted: dict[int, float] = field(default_factory=dict)

    @contextmanager
    def suggestion(self) -> Iterator[None]:
        """Add the time of the ``with`` block, which makes a suggestion."""
        since = monotonic()
        yield
        self.n_suggested += 1
        self.suggesting += monotonic() - since

    def submit(self, number: int) -> None:
        """Add the start of an evaluation, unless it was started before."""
        self.submitted.setdefault(number, monotonic())

    def finished(self, number: int, duration: float | None) -> None:
        """Add an evaluation; without a duration, its worker counts as busy since the evaluation was submitted."""
        elapsed = monotonic() - self.submitted.pop(number)
        self.n_finished += 1
        self.evaluating += elapsed if duration is None else min(duration, elapsed)

    def advice(self, optimizer: Optimizer | Study) -> str | None:
        """Return what would make the run faster, or None if workers do not mostly wait for suggestions."""
        if self.suggesting < _LEAST or not optimizer._has_model:
            return None
        now = monotonic()
        running = sum(now - since for since in self.submitted.values())
        busy = (self.evaluating + running) / (self.n_workers * (now - self.start))
        if self.suggesting < 0.5 * (now - self.start) or busy >= 0.5:
            return None
        problem = optimizer._problem
        rows = isinstance(problem.domain, (Candidates, NamedCandidates))
        has_trees = not (rows or problem.linear or problem.outcomes or problem.curve or problem.context_space)
        points = "candidates=…" if rows else "space"
        direction = ", direction='minimize'" if problem.direction == "minimize" and not problem.outcomes else ""
        classes = ["TreeSearch"] * has_trees + ["RandomSearch"]
        others = " or ".join(f"optimizer=bl.{name}({points}{direction})" for name in classes)
        workers = "the worker was" if self.n_workers == 1 else f"the {self.n_workers} workers were"
        effort = "" if rows else ", and so is BayesOpt with search=bl.Search(effort=0.25)"
        return (
            f"a suggestion takes {1000 * self.suggesting / self.n_suggested:.3g} ms and an evaluation "
            f"{1000 * self.evaluating / self.n_finished:.3g} ms, so {workers} busy {100 * busy:.0f} % of the time; "
            f"{others} is faster{effort}"
        )

"""The problem of an optimizer: its domain, contexts, fidelity, direction and clock."""

import time as clocks
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from belated import _core
from belated._core import InvalidContext, InvalidFidelity, InvalidSetting, InvalidSpace
from belated.optimizers.curve import Curve
from belated.optimizers.outcomes import Minimize, Outcomes, objectives
from belated.space.arguments import finite, one_line
from belated.space.candidates import Candidates, CandidatesLike, NamedCandidates, read_candidates
from belated.space.fidelity import Fidelity
from belated.space.linear import AnyLinear, without_constants
from belated.space.space import ContextSpace, Space
from belated.warn import warn

SpaceLike: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]] | Iterable[tuple[float, float]]


#: The maximum absolute value of a time in seconds. This limit ensures that differences of times are finite.
LATEST = 1e300


@dataclass(eq=False)
class Problem:
    """The problem that an optimizer solves, independent of the strategy; converts users' arguments for the core.

    `owner` is the name of the optimizer's class, for messages. The other arguments are the same as for optimizers.
    """

    owner: str
    space: InitVar[SpaceLike | None]
    candidates: InitVar[CandidatesLike | None]
    context: InitVar[SpaceLike | None]
    fidelity: Fidelity | None
    clock: Literal["iterations", "seconds"]
    direction: Literal["maximize", "minimize"]
    time: Callable[[], float] | None
    curve: Curve | None = None
    linear: Sequence[AnyLinear] = ()
    outcomes: Outcomes = field(default_factory=dict)

    def __post_init__(self, space: Any, candidates: Any, context: Any) -> None:
        if (space is None) == (candidates is None):
            given = "neither" if space is None else "both"
            raise InvalidSpace(f"{given} of space and candidates given: pass exactly one")
        if isinstance(space, NamedCandidates):
            raise InvalidSpace(f"space={space!r} are candidates: pass them as candidates=")
        self.domain: Space | Candidates = read_candidates(candidates) if space is None else Space(space)
        if self.linear:
            self._constrain(self.linear)
        self.context_space = None if context is None else ContextSpace(context)
        if isinstance(self.domain, Space) and self.context_space is not None:
            both = [name for name in self.context_space if name in self.domain]
            if both:
                raise InvalidSpace(f"{both} are in both {self.domain.argument} and context: give each name once")
        if self.fidelity is not None and not isinstance(self.fidelity, Fidelity):
            raise InvalidSetting(
                f"fidelity={one_line(self.fidelity)} is not usable: pass bl.Fidelity(low, high), or None"
            )
        if self.time is not None and not callable(self.time):
            raise InvalidSetting(f"time={one_line(self.time)} is not usable: pass a function that returns seconds")
        objective = self.objective
        if objective is not None:
            self.direction = "minimize" if isinstance(self.outcomes[objective], Minimize) else "maximize"
        self.core = self._new_core()
        # The kinds of warnings that were given.
        self._warned: set[str] = set()

    def has_warned(self, kind: str) -> bool:
        """Return whether a warning of a kind was given."""
        return kind in self._warned

    def warn_once(self, kind: str, message: str) -> None:
        """Give a warning, unless a warning of this kind was given before."""
        if kind not in self._warned:
            self._warned.add(kind)
            warn(f"{message}; further ones do not warn")

    @property
    def objective(self) -> str | None:
        """The name of the objective; None if outcomes were not declared, or if there are several objectives."""
        found = objectives(self.outcomes)
        return found[0] if len(found) == 1 else None

    @property
    def front(self) -> list[str]:
        """The names of the objectives of a front; empty if there are fewer than two objectives."""
        found = objectives(self.outcomes)
        return found if len(found) > 1 else []

    def _constrain(self, linear: Sequence[AnyLinear]) -> None:
        """Replace the space by the space with linear constraints. Warn of constraints that are not needed."""
        if not isinstance(self.domain, Space) or isinstance(self.domain, NamedCandidates):
            raise InvalidSetting(
                "constraints are for spaces, and candidates are given: leave out the rows that violate them"
            )
        constants = self.domain.constant_numbers
        found = [without_constants(each, self.domain, constants) for each in linear]
        left = [each for each in found if each is not None]
        self.domain = Space.from_flat(dict(self.domain), self.domain.nesting, left)
        redundant = self.domain.core.redundant
        if redundant:
            warn(f"constraints {redundant} hold wherever the other constraints hold: they can be left out")

    def _new_core(self) -> _core.Problem:
        contexts = None if self.context_space is None else self.context_space.core
        fidelities = None if self.fidelity is None else self.fidelity.core
        curve = None if self.curve is None else (self.curve.steps, self.curve.value == "best")
        minimize, seconds = self.direction == "minimize", self.clock == "seconds"
        outcomes = [(name, *goal.core, goal.range) for name, goal in self.outcomes.items()]
        return _core.Problem(self.domain.core, contexts, fidelities, minimize, seconds, curve, outcomes)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "core"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.core = self._new_core()

    def wall_time(self) -> float:
        """Return the time that the user's function `time` returns; by default, wall-clock seconds since 1970."""
        return clocks.time() if self.time is None else seconds(self.time)

    def context_numbers(self, context: Any) -> list[float] | None:
        """Return the numbers of a context, or None if contexts were not declared."""
        if self.context_space is None:
            if context is not None:
                raise InvalidContext(self._undeclared("context", context, "its space as context="))
            return None
        if context is None:
            raise InvalidContext(f"context is missing: pass a dict with the names {list(self.context_space)}")
        return self.context_space.numbers(context)

    def with_context(self, points: NDArray[np.float64], context: Any) -> NDArray[np.float64]:
        """Return encoded points; if contexts were declared, append the columns of the context to each point."""
        self.context_numbers(context)
        if self.context_space is None:
            return points
        return np.hstack([points, np.tile(self.context_space.encode(context), (len(points), 1))])

    def as_given(self, params: Any, *found: NDArray[np.float64]) -> tuple[Any, ...]:
        """Return arrays with an entry for each point; for a single point, return the entries instead of arrays."""
        single = params is not None and self.domain.several(params, listed=True) is None
        return tuple(float(each[0]) for each in found) if single else found

    def contexts(self, context: Any, n: int) -> list[list[float] | None]:
        """Return the numbers of the context n times, once for each point."""
        contexts = None if self.context_space is None else self.context_space.several(context)
        if contexts is None:
            return [self.context_numbers(context)] * n
        if len(contexts) != n:
            raise InvalidContext(f"context has {len(contexts)} entries for {n} points: pass one for each, or one")
        return [self.context_numbers(each) for each in contexts]

    def check_fidelity(self, fidelity: Any) -> float | None:
        """Check a fidelity and return it as an int or float; return None for None."""
        if fidelity is None:
            return None
        if self.fidelity is None:
            raise InvalidFidelity(self._undeclared("fidelity", fidelity, "fidelity=bl.Fidelity(low, high)"))
        return self.fidelity.check(fidelity)

    def _undeclared(self, name: str, given: Any, declaration: str) -> str:
        return f"{name}={one_line(given)} was not declared: pass {declaration} to {self.owner}, or leave it out here"

    def fidelity_of(self, number: float | None) -> float | None:
        """Convert a fidelity of the core to the user's units; return None if a fidelity was not declared."""
        return None if self.fidelity is None else self.fidelity.from_number(number)


def seconds(time: Callable[[], float]) -> float:
    """Return the result of the function `time`, with -0.0 replaced by 0.0; raise InvalidSetting if it is invalid."""
    now = finite(time())
    if now is None or abs(now) > LATEST:
        raise InvalidSetting(f"time() did not return a number of seconds within ±{LATEST:g}")
    return now + 0.0

"""The core's interface of the second edition on a core of the first; to be deleted with it.

With a core of the second edition (it has ``_core.defaults``) the names here are those of that core.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated import _core
from belated._core import InvalidSetting

Array = NDArray[np.float64]

SECOND_EDITION = hasattr(_core, "defaults")

_ACQUISITIONS = {"LogEI": "log_ei", "UCB": "ucb", "ThompsonSampling": "thompson", "MaxVariance": "max_variance"}

# Setting of the first edition → its name now, for messages.
_NAMES = {
    **dict.fromkeys(("beta", "rkhs_bound", "delta", "predictive_std", "n_features"), "acquisition.{}"),
    **dict.fromkeys(("floor", "late"), "pending.{}"),
    **dict.fromkeys(("kernel", "ard", "lengthscale", "priors", "mean", "targets"), "surrogate.{}"),
    **dict.fromkeys(("n_restarts", "refit_every", "refit_clock", "fit_rows", "initial_theta"), "surrogate.{}"),
    "variance": "surrogate.signal_std",
    "noise": "surrogate.noise_std",
    "thompson": "acquisition.draws",
    "scale_draws": "acquisition.widen",
    "maximizer": "acquisition.multistart",
    "n_raw": "acquisition.multistart",
    "n_starts": "acquisition.multistart",
    "lie": "pending.value",
    "n_nearest": "pending.k",
    "n_fantasies": "pending.n",
    "n_initial": "initial.n",
    "initial": "initial.how",
}


def _first_edition_settings(strategy: dict[str, Any]) -> dict[str, Any]:
    """The flat settings of the first edition that a definition of BayesOpt amounts to."""
    acquisition, initial = dict(strategy["acquisition"]), strategy["initial"]
    flat: dict[Any, Any] = {"acquisition": _ACQUISITIONS[acquisition.pop("kind")]}
    multistart = acquisition.pop("multistart")
    if multistart is not None:
        flat |= {"maximizer": "multistart", "n_raw": multistart[0], "n_starts": multistart[1]}
    for name, value in acquisition.items():
        flat[{"draws": "thompson", "widen": "scale_draws"}.get(name, name)] = value
    if strategy["pending"] is not None:
        pending = dict(strategy["pending"])
        kind = pending.pop("kind")
        names = {"value": "lie", "k": "n_nearest", "n": "n_fantasies", "floor": "floor", "late": "late"}
        flat |= {"pending": kind.lower()} | {names[name]: value for name, value in pending.items()}
    surrogate = {name: value for name, value in strategy["surrogate"].items() if name != "kind"}
    for name, old in (("signal_std", "variance"), ("noise_std", "noise")):
        std = surrogate.pop(name)
        if std is not None:
            surrogate[old] = std * abs(std)  # one below 0 stays below 0, and is refused
    theta = surrogate.pop("initial_theta")
    if theta is not None:
        surrogate["initial_theta"] = (theta[0], theta[1] * abs(theta[1]), theta[2] * abs(theta[2]))
    flat |= surrogate | {"n_initial": initial["n"], "initial": initial["how"], "window": strategy["window"]}
    return {name: np.array(value) if isinstance(value, list) else value for name, value in flat.items()}


def _width(coordinates: list[dict[str, Any]]) -> int:
    return sum(coordinate.get("n", 1) for coordinate in coordinates)


@contextmanager
def _renamed() -> Iterator[None]:
    """Messages of the first edition with the names of the second."""
    try:
        yield
    except InvalidSetting as error:
        name = re.match(r"\w+", str(error))
        if name is None or name[0] not in _NAMES:
            raise
        new = _NAMES[name[0]].format(name[0])
        raise InvalidSetting(f"{new}{str(error)[name.end() :]}") from None


def box(coordinates: str) -> _core.Domain:
    """A box, from its coordinates as JSON."""
    if SECOND_EDITION:
        return _core.Domain.box(coordinates)  # type: ignore[arg-type]
    # The fields come in the order of the tuple.
    return _core.Domain.box([tuple([c.pop("kind").lower(), *c.values()]) for c in json.loads(coordinates)])


@dataclass(frozen=True)
class TrialRecord:
    """One trial as the log knows it."""

    number: int
    point: Array
    index: int | None
    given: list[float] | None
    context: Array
    state: str
    value: float | None
    std: float | None
    suggested_at: float
    observed_at: float | None


class Optimizer:
    """A log of trials and the strategy that proposes the next one."""

    def __init__(self, domain: _core.Domain, definition: str) -> None:
        made = json.loads(definition)
        width, strategy = _width(made["context"]), made["strategy"]
        if strategy["kind"] == "RandomSearch":
            self._core = _core.Optimizer.random_search(domain, width, made["clock"], made["seed"])
            return
        settings = _first_edition_settings(strategy)
        with _renamed():
            self._core = _core.Optimizer.bayes_opt(domain, width, made["clock"], made["seed"], settings)

    def suggest(self, n: int, context: Array | None, now: float | None) -> list[int]:
        return self._core.suggest(n, context, now)

    def propose(
        self,
        n: int,
        context: Array | None,
        now: float | None,
        wall_time: float | None = None,
        expires_after: float | None = None,
    ) -> list[str]:
        return self._core.propose(n, context, now, wall_time, expires_after)

    def extend(self, events: list[str]) -> list[int | None]:
        numbers: list[int | None] = []
        for event in events:
            started = len(self._core)
            self._core.extend([event])  # refuses what is no event
            [(kind, facts)] = json.loads(event).items()
            numbers.append(started if kind in ("Suggested", "Added") else facts.get("number"))
        return numbers

    def validate_observe(
        self, number: int, value: float, now: float | None, amend: bool, std: float | None
    ) -> str | None:
        return self._core.draft_observe(number, value, now, amend, std)

    def validate_fail(self, number: int, now: float | None) -> str | None:
        return self._core.draft_fail(number, now)

    def validate_abandon(self, number: int, now: float | None) -> str | None:
        return self._core.draft_abandon(number, now)

    def validate_add(
        self,
        point: Array,
        index: int | None,
        given: list[float] | None,
        context: Array | None,
        value: float | None,
        now: float | None,
        std: float | None,
    ) -> str:
        event = self._core.draft_add(point, index, context, value, now, std)
        assert event is not None
        return event

    def validate_enqueue(self, point: Array, index: int | None, given: list[float] | None) -> str:
        event = self._core.draft_enqueue(point, index)
        assert event is not None
        return event

    def observe(self, number: int, value: float, now: float | None, amend: bool, std: float | None = None) -> None:
        self._core.observe(number, value, now, amend, std)

    def fail(self, number: int, now: float | None) -> None:
        self._core.fail(number, now)

    def abandon(self, number: int, now: float | None) -> None:
        self._core.abandon(number, now)

    def add(
        self,
        point: Array,
        index: int | None,
        given: list[float] | None,
        context: Array | None,
        value: float | None,
        now: float | None,
        std: float | None = None,
    ) -> int:
        return self._core.add(point, index, context, value, now, std)

    def enqueue(self, point: Array, index: int | None, given: list[float] | None) -> None:
        self._core.enqueue(point, index)

    def recommend(self, context: Array | None, now: float | None) -> tuple[Array, int | None, float, float] | None:
        return self._core.recommend(context, now)

    def surrogate(
        self, now: float | None, pending: bool, wall_time: float | None = None
    ) -> tuple[_core.GaussianProcess, float, float] | None:
        return self._core.surrogate(now, pending, wall_time)

    def predict(
        self, points: Array, now: float | None, pending: bool, wall_time: float | None = None
    ) -> tuple[Array, Array] | None:
        surrogate = self._core.surrogate(now, pending, wall_time)
        if surrogate is None:
            return None
        model, center, scale = surrogate
        mean, std = model.predict(points)
        return center + scale * mean, scale * std

    def trial(self, number: int) -> TrialRecord:
        found = self._core.trial(number)
        facts = {each.name: getattr(found, each.name) for each in fields(TrialRecord) if each.name != "given"}
        return TrialRecord(**facts, given=None)

    def numbers(self, state: str | None) -> list[int]:
        return self._core.numbers(state)

    def best(self) -> int | None:
        return self._core.best()

    def events(self, start: int) -> list[str]:
        return self._core.events(start)

    def n_events(self) -> int:
        return self._core.n_events()

    def __len__(self) -> int:
        return len(self._core)

    def to_bytes(self) -> bytes:
        return self._core.to_bytes()

    @staticmethod
    def from_bytes(data: bytes) -> Optimizer:
        made = Optimizer.__new__(Optimizer)
        made._core = _core.Optimizer.from_bytes(data)
        return made


if SECOND_EDITION:
    Optimizer = _core.Optimizer  # type: ignore[misc,assignment]
    TrialRecord = _core.TrialRecord  # type: ignore[misc,assignment]

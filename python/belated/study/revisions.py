"""Revisions of a study's problem: the arguments of `Study.revise`, and the points of earlier trials in the new problem.

The *stages* of a study are its optimizers: the optimizer with which it was created, and one for each revision. A point
of an earlier stage is converted by the names and values of its parameters, one revision after another.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from belated import _core
from belated._core import (
    BelatedError,
    InvalidContext,
    InvalidFidelity,
    InvalidPoint,
    InvalidSpace,
    InvalidValue,
    TrialRecord,
    revision_event,
    revision_of,
)
from belated.errors import InvalidSetting
from belated.optimizers.constraints import Constraint, checked_functions
from belated.optimizers.log import Log
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.problem import Problem
from belated.optimizers.request import Request
from belated.short_repr import short_repr
from belated.space.arguments import is_list
from belated.space.candidates import Candidates, NamedCandidates
from belated.space.dimensions import Categorical, Dimension, Ordinal, choices_of
from belated.space.nested import Nesting
from belated.space.space import Place, Space
from belated.study.definition import optimizer_from, value_as_data, value_from

T = TypeVar("T")

# A trial in the new problem, as the core takes it: place of the start, place of the run, context, fidelity, whether the
# new problem has the fidelity, and the reason for leaving the trial out. A part that the new problem lacks is None.
Converted: TypeAlias = tuple[Place | None, Place | None, list[float] | None, float | None, bool, str | None]

# Values of a trial by flat name, and the number of the problem to which they belong.
Part: TypeAlias = tuple[int, dict[str, Any]]


@dataclass(frozen=True)
class Revision:
    """The arguments of a call of `Study.revise`. `fill`, `map` and `keep` have values as users write them."""

    definition: Mapping[str, Any]
    fill: Mapping[str, Any]
    map: Mapping[str, Sequence[tuple[Any, Any]]]
    keep: Mapping[str, Any]
    #: Whether the constraints were passed, too.
    constrained: bool
    #: The pending trials that the functions among the constraints refuse.
    refused: Sequence[int] = ()

    def to_event(self, time: float, now: float, by: str | None) -> str:
        """Return the event of the revision by an author. `now` is the time on the optimizer's clock."""
        fill, keep = (
            {name: value_as_data(value, f"{what}[{name!r}]", True) for name, value in given.items()}
            for what, given in (("fill", self.fill), ("keep", self.keep))
        )
        pairs = {
            name: [[value_as_data(value, f"map[{name!r}]", True) for value in pair] for pair in given]
            for name, given in self.map.items()
        }
        texts = [json.dumps(data, allow_nan=False) if data else None for data in (fill, pairs, keep)]
        definition = json.dumps(self.definition, allow_nan=False, separators=(",", ":"))
        refused = list(self.refused)
        return revision_event(definition, texts[0], texts[1], texts[2], self.constrained, refused, time, now, by)

    @classmethod
    def from_event(cls, event: str) -> "Revision | None":
        """Return the revision in an event, or None for another event."""
        found = revision_of(event)
        if found is None:
            return None
        definition, *texts, constrained, refused = found
        fill, renamed, keep = (json.loads(text or "{}") for text in texts)
        return cls(
            json.loads(definition),
            {name: value_from(data) for name, data in fill.items()},
            {name: [(value_from(old), value_from(new)) for old, new in pairs] for name, pairs in renamed.items()},
            {name: value_from(data) for name, data in keep.items()},
            constrained,
            refused,
        )


@dataclass(eq=False)
class Stage:
    """The optimizer of a study between two revisions, and the revision that led to it."""

    optimizer: Optimizer
    definition: Mapping[str, Any]
    revision: Revision | None = None
    #: The number of trials at the revision.
    first: int = 0

    @property
    def problem(self) -> Problem:
        """The problem of the optimizer."""
        return self.optimizer._problem

    @property
    def is_constrained(self) -> bool:
        """Whether the revision replaced the constraints. Functions of earlier stages are then outdated."""
        return self.revision is not None and self.revision.constrained

    def after(self, revision: Revision, n_trials: int, functions: Sequence[Constraint] | None = None) -> "Stage":
        """Return the next stage. Unless the revision replaced the constraints, the functions stay in force."""
        functions = functions or (None if revision.constrained else self.optimizer.constraints)
        functions = checked_functions(functions)
        if len(functions or ()) != len(revision.definition["problem"].get("constraints", ())):
            functions = None
        made = optimizer_from(revision.definition, self.optimizer.time, functions)
        return Stage(made, revision.definition, revision, n_trials)


# Arguments of `Study.revise`.


def parameters(problem: Problem) -> dict[str, Dimension]:
    """Return the parameters of the space and of the context by flat name."""
    spaces = (problem.domain, problem.context_space)
    return {name: each for space in spaces if isinstance(space, Space) for name, each in space.items()}


def _optional(problem: Problem) -> Collection[str]:
    """Return the names of the parameters that params may lack."""
    return problem.domain.optional if isinstance(problem.domain, Space) else ()


def checked_revision(
    old: Problem,
    new: Problem,
    given: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None, Mapping[str, Any] | None],
    has_trials: bool,
) -> tuple[dict[str, Any], dict[str, list[tuple[Any, Any]]], dict[str, Any]]:
    """Check the arguments `fill`, `map` and `keep` of `Study.revise`, and return them in the form of `Revision`."""
    before, after = parameters(old), parameters(new)
    for name, each in zip(("fill", "map", "keep"), given, strict=True):
        if each is not None and not isinstance(each, Mapping):
            raise InvalidSetting(f"{name}={short_repr(each)} is not usable: pass a dict with names of parameters")
    fill, renamed, keep = (dict(each or {}) for each in given)
    new_names = [name for name in after if name not in before]
    may_lack = [name for name in after if name in _optional(old)]
    removed = [name for name in before if name not in after]
    for name in removed:
        offered = list(before[name].offered or ())
        if len(offered) == 1:  # a revision made the parameter a constant
            keep.setdefault(name, offered[0])
    gaps = _optional(new) if isinstance(new.domain, NamedCandidates) else ()
    _check_names("fill", fill, [*new_names, *may_lack], "a parameter that the revision adds")
    _check_names("map", renamed, [name for name in before if name in after], "a parameter of both spaces")
    _check_names("keep", keep, removed, "a parameter that the revision removes")
    if has_trials:
        # Constants have the width 0. They need neither fill nor keep.
        missing = [name for name in new_names if name not in fill and after[name].width and name not in gaps]
        if missing:
            raise InvalidSetting(
                f"fill misses {missing}: pass the value that the trials so far had, as fill={{{missing[0]!r}: …}}"
            )
        missing = [
            name
            for name in removed
            if name not in keep and before[name].width and not _is_gone(name, before, after, (renamed, keep))
        ]
        if missing:
            raise InvalidSetting(
                f"keep misses {missing}: pass the value that belongs to the new space, as keep={{{missing[0]!r}: …}}"
            )
    return (
        {name: _value(after[name], value, f"fill[{name!r}]") for name, value in fill.items()},
        {name: _checked_map(before[name], after[name], pairs, name) for name, pairs in renamed.items()},
        {name: _value(before[name], value, f"keep[{name!r}]") for name, value in keep.items()},
    )


def _is_gone(name: str, before: Any, after: Any, changes: tuple[Mapping[str, Any], Mapping[str, Any]]) -> bool:
    """Return whether a removed parameter is inactive wherever its parents have values of the new space."""
    renamed, keep = changes
    for parent, values in (before[name].when or {}).items():
        names = _renames(renamed, parent)
        if parent in after:
            holds = any(after[parent].known(names.get(_key(value), value)) is not None for value in values)
        elif parent in keep:
            holds = any(before[parent].known(value) == before[parent].known(keep[parent]) for value in values)
        else:
            holds = True
        if not holds or _is_gone(parent, before, after, changes):
            return True
    return False


def _renames(renamed: Any, name: str) -> dict[Any, Any]:
    """Return the new choices of a parameter by the keys of the old choices, from the argument `map` of a revision."""
    pairs = renamed.get(name) if isinstance(renamed, Mapping) else None
    found = {}
    for old, new in pairs.items() if isinstance(pairs, Mapping) else ():
        with suppress(InvalidSpace):  # values that cannot be stored are refused later
            value_as_data(new, name, True)
            found[_key(old)] = new
    return found


def _check_names(argument: str, given: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        allowed = f"one of {list(known)}" if known else "nothing, because there is none"
        raise InvalidSetting(f"{argument} has {short_repr(unknown[0])}, which is not {what}: pass {allowed}")


def _value(dimension: Dimension, value: Any, what: str) -> Any:
    number = dimension.known(value)
    if number is None:
        core = dimension.core
        expected = core.expected if dimension.offered is None else core.expected_measured
        raise InvalidSetting(f"{what}={short_repr(value)} is not usable: pass {expected}")
    return dimension.from_number(number)


def _checked_map(before: Dimension, after: Dimension, pairs: Any, name: str) -> list[tuple[Any, Any]]:
    what = f"map[{name!r}]"
    if choices_of(before) is None:
        raise InvalidSetting(f"{what} is not usable: map renames choices, and {name!r} was {before!r}")
    if not isinstance(pairs, Mapping):
        raise InvalidSetting(f"{what}={short_repr(pairs)} is not usable: pass a dict {{old value: new value}}")
    return [
        (_value(before, value, f"a key of {what}, {value!r},"), _value(after, new, f"{what}[{value!r}]"))
        for value, new in pairs.items()
    ]


def with_known(stages: Sequence[Stage], log: Log, new: Space, renamed: Any, keep: Any) -> Space:
    """Return the new space, in which models know the values of trials that the new space does not offer.

    A parameter that is active only at such values is known, too, unless it is in `keep`. `renamed` and `keep` are the
    arguments `map` and `keep` of the revision.
    """
    old = stages[-1].problem.domain
    if not isinstance(old, Space) or isinstance(old, NamedCandidates):
        return new
    groups, old_groups = (frozenset() if each.nesting is None else each.nesting.choices for each in (new, old))
    used, found = _used_values(old, log, len(stages) - 1), dict(new)
    for name, each in new.items():
        if name in used and (name in groups) == (name in old_groups) and each.offered is None:
            with suppress(BelatedError):
                found[name] = _known(old[name], each, used[name], _renames(renamed, name))
    if all(found[name] is new[name] for name in new):
        return new
    for name, each in new.items():
        if name in old and type(old[name]) is type(each) and each.when is not None:
            # The parameter was also active at values that are not offered any longer.
            before = _known_conditions(old[name], found, renamed)
            more = {
                parent: [value for value in before.get(parent, ()) if not found[parent].offers(value)]
                for parent in each.when
            }
            when = {parent: [*values, *_missing(more[parent], values)] for parent, values in each.when.items()}
            found[name] = replace(found[name], when=when)
    nesting, kept = new.nesting, keep if isinstance(keep, Mapping) else {}
    left = [name for name, each in old.items() if each.when is not None and name not in found and name not in kept]
    left = [name for name in left if (nesting is None) == (old.nesting is None)]
    for _ in range(len(left)):  # a parent may follow its children
        for name in left:
            when = _known_conditions(old[name], found, renamed)
            if name not in found and when.keys() == (old[name].when or {}).keys() and not _may_hold(when, found):
                found[name] = replace(old[name], when=when, offered=None)
                if nesting is not None and old.nesting is not None:
                    choices = {*nesting.choices} | ({name} & old.nesting.choices)
                    nesting = Nesting(nesting.paths | {name: old.nesting.paths[name]}, choices)
    return Space.from_flat(found, nesting)


def _known_conditions(old: Dimension, found: Mapping[str, Dimension], renamed: Any) -> dict[str, list[Any]]:
    """Return those conditions of an old parameter, with new names of choices, that trials of the new space may meet."""
    when = {}
    for parent, values in (old.when or {}).items():
        names = _renames(renamed, parent)
        values = [names.get(_key(value), value) for value in values]
        if known := [value for value in values if parent in found and found[parent].known(value) is not None]:
            when[parent] = known
    return when


def _may_hold(when: Mapping[str, Sequence[Any]], found: Mapping[str, Dimension]) -> bool:
    """Return whether a suggestion may satisfy the conditions."""
    return all(
        any(found[parent].offers(value) for value in values) and _may_hold(found[parent].when or {}, found)
        for parent, values in when.items()
    )


def _missing(values: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Return the values that are not among the others."""
    known = {_key(value) for value in others}
    return [value for value in values if _key(value) not in known]


def _known(old: Dimension, new: Dimension, used: set[Any], renamed: Mapping[Any, Any]) -> Dimension:
    """Return the new parameter together with the used values of the old parameter, which it does not offer.

    `renamed` has the new names of choices by the keys of the old ones. A choice that is renamed to one that the new
    parameter lacks stays known if it was not offered before.
    """
    before, after = choices_of(old), choices_of(new)
    if after is None and not new.width:
        after = [new.member(0)]
    if before is not None:
        offered = {_key(value) for value in (before if old.offered is None else old.offered)}
        kept = {_key(value) for value in before} & used - (renamed.keys() & offered)  # without numbers between levels
        used = {_key(renamed.get(_key(value), value)) for value in before if _key(value) in kept}
        before = [renamed.get(_key(value), value) for value in before]
    if after is None or used <= {_key(value) for value in after}:
        return new
    is_constant = len(after) == 1
    if before is None:
        return replace(old, when=new.when, offered=after) if is_constant else new
    if isinstance(old, Ordinal):
        places = {_key(value): place for place, value in enumerate(before)}
        order = [places.get(_key(value), -1) for value in after]
        is_part = (isinstance(new, Ordinal) or is_constant) and min(order) >= 0 and order == sorted(order)
        return replace(old, values=before, when=new.when, offered=after) if is_part else new
    if isinstance(new, Ordinal):
        return new
    lost = list({_key(value): value for value in _missing(before, after) if _key(value) in used}.values())
    described = _descriptors(old, new, after, lost, renamed)
    if described is None and isinstance(new, Categorical) and new.descriptors is not None:
        return new
    return Categorical([*after, *lost], when=new.when, descriptors=described, offered=after)


def _descriptors(
    old: Dimension, new: Dimension, after: Sequence[Any], lost: Sequence[Any], renamed: Mapping[Any, Any]
) -> Any:
    """Return the descriptors of the choices, those of lost choices as before; None if some choices lack them."""
    own = {
        _key(renamed.get(_key(choice), choice) if each is old else choice): row
        for each in (old, new)
        if isinstance(each, Categorical) and each.descriptors is not None
        for choice, row in zip(each.options, each.descriptors, strict=True)
    }
    rows = [own.get(_key(choice)) for choice in (*after, *lost)]
    names = {frozenset(row or ()) for row in rows}
    return rows if None not in rows and len(names) == 1 else None


def _used_values(domain: Space, log: Log, era: int) -> dict[str, set[Any]]:
    """Return keys of the values of all trials that the present problem has, by flat name."""
    used = dict[str, set[Any]]()
    for number in range(len(log)):
        record = log.trial(number)
        for place, own in ((record.place, record.era), (record.run, record.era_of_run)):
            if place is not None and own == era:
                for name, value in domain.named_at(place).items():
                    used.setdefault(name, set()).add(_key(value))
    return used


def check_feasible(optimizer: Optimizer) -> None:
    """Raise InvalidSetting if a search does not find a point that satisfies the constraints of the optimizer."""
    problem = _core.Problem(optimizer.domain.core)
    core = _core.Optimizer(problem, optimizer.seed_, '{"kind": "RandomSearch"}')
    try:
        core.suggest(1, None, None, optimizer._constraints)
    except InvalidSpace:
        raise InvalidSetting(
            "constraints refuse every point that the search tried: pass constraints that points of the space satisfy"
        ) from None


# Conversion of trials.


class Converter:
    """Converts the trials of the first stages to the problem of the last stage.

    If `measured` is True, a point beyond a bound, between steps or without a row of the new problem remains a
    measurement at this point. Otherwise only points that were such measurements before remain.
    """

    def __init__(self, stages: Sequence[Stage], measured: bool = True) -> None:
        self._measured = measured
        self._problems = [stage.problem for stage in stages]
        self._steps = [_Step(a.problem, b.problem, b.revision) for a, b in zip(stages, stages[1:], strict=False)]
        self._last = len(stages) - 1
        #: The new problem.
        self.new = self._problems[-1]
        self._equal_rows: dict[Any, Place | None] = {}
        last = stages[-1].revision
        before, after = (_domain_as_text(stage.definition) for stage in stages[-2:])
        #: Whether the points of the last two problems are equal.
        self.is_same = last is not None and not last.map and before == after

    def trial(self, record: TrialRecord) -> Converted:
        """Return a trial in the new problem."""
        contextual = list(record.context)
        if self.is_same and record.left_out is None and record.era == self._last - 1:
            return record.place, record.run, contextual, record.fidelity, True, None
        known, at = self._named_context(record.era_of_context, contextual), (record.era, record.place)
        at_run = at if record.run is None else (record.era_of_run, record.run)
        fidelity, no_fidelity = _converted(lambda: self._fidelity(record))
        context, no_context = _converted(lambda: self._context(known, self._named(*at_run)))
        start, no_point = _converted(lambda: self.place(*at, known))
        run = None
        if record.run is not None:
            # The point that was run counts, and not the suggested point.
            run, no_point = _converted(lambda: self.place(*at_run, known))
        return start, run, context, fidelity, no_fidelity is None, no_fidelity or no_context or no_point

    def queued(self, place: Place, partial: bool) -> tuple[Place, bool]:
        """Return an enqueued point in the new problem, and whether it is partial."""
        problem, new = self._last - 1, self._problems[-1].domain
        if not partial:
            place = self.place(problem, place, measured=False)
            if isinstance(new, Space) and not isinstance(place, int):
                new.core.check_linear(place)
            return place, False
        old = self._problems[problem].domain
        assert isinstance(old, Space) and isinstance(new, Space)
        return new.locate_part(new.nested(self.part(problem, old.part_at(place), is_complete=False)))

    def _fidelity(self, record: TrialRecord) -> float | None:
        problem = record.era_of_fidelity
        return self.fidelity(problem, self._problems[problem].fidelity_of(record.fidelity))

    def fidelity(self, problem: int, value: float | None, end: int = -1) -> float | None:
        """Return a fidelity of an earlier problem in a later problem, or raise InvalidFidelity."""
        old, new = self._problems[problem], self._problems[end]
        if old.fidelity is None:
            return None if new.fidelity is None else new.fidelity.high
        if new.fidelity is not None:
            return new.fidelity.check(value)
        if value != old.fidelity.high:
            raise InvalidFidelity(f"fidelity={value!r} is below the full fidelity {old.fidelity.high!r}")
        return None

    def fidelity_by_steps(self, problem: int, value: float | None) -> float | None:
        """As `fidelity`, with a conversion at each revision, as for trials. A problem without the value is skipped."""
        at = problem
        for end in range(problem + 1, self._last + 1):
            try:
                value, at = self.fidelity(at, value, end), end
            except InvalidFidelity:
                if end == self._last:
                    raise
        return value

    def place(self, problem: int, place: Place, context: Part | None = None, measured: bool | None = None) -> Place:
        """Return a point of an earlier problem in the new problem, or raise InvalidPoint."""
        measured = self._measured if measured is None else measured
        old, new = self._problems[problem].domain, self._problems[-1].domain
        if isinstance(old, Candidates) and isinstance(new, Candidates):
            key = problem, tuple(place) if isinstance(place, list) else place, measured
            if key not in self._equal_rows:
                row = np.asarray(old.params_at(place), dtype=np.float64)
                found: Place | None = new.core.find(row.tolist()) if old.width == new.width else None
                if found is None and (measured or isinstance(place, list)) and old.width == new.width:
                    found = row.tolist()
                self._equal_rows[key] = found
            known = self._equal_rows[key]
            if known is None:
                raise InvalidPoint(f"the row {short_repr(old.params_at(place).tolist())} is not a candidate")
            return known
        values = self._values(context, self._named(problem, place))
        # A point that was measured beyond a bound or between steps may also be so in the new space.
        measured = measured or (isinstance(old, Space) and not old.contains(old.named_at(place)))
        return self._located(problem, values, measured)

    def _located(self, problem: int, values: Mapping[str, Any], measured: bool) -> Place:
        """Return the point with these values, without the values of parameters that are inactive now."""
        new = self._problems[-1].domain
        assert isinstance(new, Space)
        part = {name: value for name, value in values.items() if name in new}
        self._check_removed(self._of_spaces(problem, values), InvalidPoint)
        part = new.active_part(part)
        # Values that are not offered are values of trials, too.
        return new.locate(new.nested(part), measured=measured or (not self._measured and new.knows(part)))

    def _of_spaces(self, problem: int, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of parameters of a space. The values of a context are checked with the context."""
        spaces = [each.domain for each in self._problems[problem:] if isinstance(each.domain, Space)]
        return {name: value for name, value in values.items() if any(name in space for space in spaces)}

    def _of_contexts(self, problem: int, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of parameters of a context, also of one that a revision added and another removed."""
        contexts = [each.context_space for each in self._problems[problem:] if each.context_space is not None]
        return {name: value for name, value in values.items() if any(name in each for each in contexts)}

    def run(self, problem: int, place: Place, record: TrialRecord | None) -> Place:
        """Return the point of an earlier problem at which a trial was run, or raise InvalidPoint.

        `record` is the present record of the trial, which has the values of the former context.
        """
        old, new = self._problems[problem], self._problems[-1]
        if record is None or record.era_of_context != self._last or isinstance(old.domain, Candidates):
            return self.place(problem, place)
        values = self._values(self._named(problem, place))
        known = self._named_context(self._last, list(record.context))[1]
        if record.era == self._last:
            known |= self._named(self._last, record.place)[1]
        for name in parameters(old):
            if name not in values and name in known:  # the parameter was a part of the context
                values[name] = known[name]
            elif name in (new.context_space or ()) and name in values and _key(values[name]) != _key(known.get(name)):
                raise InvalidPoint(
                    f"{name}={short_repr(values[name])}, and the trial has the context "
                    f"{name}={short_repr(known.get(name))}"
                )
        return self._located(problem, values, measured=True)

    def part(self, problem: int, values: Mapping[str, Any], is_complete: bool) -> dict[str, Any]:
        """Return values of an enqueued point by flat name, or raise InvalidPoint; `is_complete` if none is missing."""
        new, carried = self._problems[-1].domain, dict(values)
        assert isinstance(new, Space)
        for step in self._steps[problem:]:
            step.apply(carried)
        self._check_removed(self._of_spaces(problem, carried), InvalidPoint)
        if is_complete:
            return new.active_part({name: value for name, value in carried.items() if name in new})
        # A parameter with conditions may be inactive once the missing values are chosen.
        return {
            name: value for name, value in carried.items() if name in values or (name in new and new[name].when is None)
        }

    def context_of_request(self, problem: int, context: list[float] | None) -> Any:
        """Return the context of a request of an earlier problem as users write it, or raise InvalidContext."""
        old, new = self._problems[problem].context_space, self._problems[-1].context_space
        values: dict[str, Any] = {} if old is None or context is None else old.named_at(list(context))
        for step in self._steps[problem:]:
            step.apply(values)
        given = {name: value for name, value in values.items() if old is not None and name in old}
        self._check_removed(self._of_contexts(problem, values), InvalidContext)
        for name in given:
            if new is None or name not in new:
                raise InvalidContext(f"{name!r} belongs to the space now: pass it as fixed=")
        return None if new is None else new.nested({name: value for name, value in values.items() if name in new})

    def fixed(self, problem: int, fixed: Any) -> dict[Any, Any]:
        """Return the argument `fixed` of an earlier problem, by flat name, or raise InvalidPoint."""
        old, new = self._problems[problem].domain, self._problems[-1].domain
        if not isinstance(old, Space) or not isinstance(new, Space):
            if old.width != new.width:
                raise InvalidPoint(f"fixed={short_repr(fixed)}, and the candidates have {new.width} columns")
            return dict(fixed)
        found, dimensions = dict(old.flat(fixed)), dict(old)
        for step in self._steps[problem:]:
            for name in list(found):
                if name in step.removed:
                    if not step.holds_when_removed(name, dimensions[name], found.pop(name)):
                        raise InvalidPoint(f"fixed has {name!r}: {self._removal(name)}")
                else:
                    found[name] = step.mapped(name, dimensions[name], found[name])
            dimensions = step.after
        for name in found:
            if name not in new:
                raise InvalidPoint(f"fixed has {name!r}, which belongs to the context now: pass it as context=")
        return found

    def shared(self, problem: int, names: Any) -> list[Any] | None:
        """Return the argument `shared` of an earlier problem. All trials share the value of a removed parameter."""
        new, steps = self._problems[-1].domain, self._steps[problem:]
        if not isinstance(new, Space):
            return list(names)
        gone = {name for step in steps for name in step.removed}
        return [name for name in names if name not in gone and name in new] or None

    def _removal(self, name: str) -> str:
        numbers = [number for number, step in enumerate(self._steps, 2) if name in step.removed]
        return f"the parameter {name!r} was removed by revision {numbers[-1]}"

    def start(self, problem: int, place: Place, context: list[float]) -> tuple[Place, list[float]]:
        """Return the point and the context of an earlier problem in the new problem, or raise an error."""
        known = self._named_context(problem, context)
        return self.place(problem, place, known), self._context(known, self._named(problem, place))

    def _context(self, context: Part, point: Part) -> list[float]:
        """Return a context in the new problem, or raise InvalidContext."""
        new = self._problems[-1].context_space
        values = self._values(context, point)
        self._check_removed(self._of_contexts(context[0], values), InvalidContext)
        if new is None:
            return []
        return new.numbers(new.nested({name: value for name, value in values.items() if name in new}))

    def _check_removed(self, values: Mapping[str, Any], error: type[InvalidPoint] | type[InvalidContext]) -> None:
        """Raise an error if a removed parameter has another value than the new problem is for."""
        domain, contexts = self._problems[-1].domain, self._problems[-1].context_space
        known = {*(domain if isinstance(domain, Space) else ()), *(contexts or ())}
        for name, value in values.items():
            if name not in known:
                kept = [short_repr(step.keep[name]) for step in self._steps if name in step.keep]
                what = f"the space is for {name}={kept[-1]}" if kept else "the space lacks this parameter"
                raise error(f"{name}={short_repr(value)}, and {what}: {self._removal(name)}")

    def _named(self, problem: int, place: Place) -> Part:
        domain = self._problems[problem].domain
        return problem, domain.named_at(place) if isinstance(domain, Space) else {}

    def _named_context(self, problem: int, context: list[float]) -> Part:
        contexts = self._problems[problem].context_space
        return problem, {} if contexts is None else contexts.named_at(list(context))

    def _values(self, *parts: Part | None) -> dict[str, Any]:
        """Return the values of the parts of a trial by flat name, after all revisions.

        Values of a later problem replace those of an earlier problem, which a revision could not convert.
        """
        known = sorted((part for part in parts if part is not None), key=lambda part: part[0])
        values: dict[str, Any] = {}
        for (problem, named), end in zip(known, [*(part[0] for part in known[1:]), self._last], strict=True):
            values |= named
            for step in self._steps[problem:end]:
                step.apply(values)
        return values


def _domain_as_text(definition: Mapping[str, Any]) -> str:
    # Texts are compared, because 1, 1.0 and True are equal in Python.
    return json.dumps([definition["problem"].get(name) for name in ("space", "candidates", "context", "fidelity")])


class _Step:
    """One revision, applied to the values of a trial by name."""

    def __init__(self, old: Problem, new: Problem, revision: Revision | None) -> None:
        assert revision is not None
        before, after = parameters(old), parameters(new)
        self._map = {name: {_key(a): b for a, b in pairs} for name, pairs in revision.map.items()}
        self._fill, self.keep = revision.fill, revision.keep
        self.after = after
        self.removed = removed = {name: each for name, each in before.items() if name not in after}
        # Constants are removed from all trials.
        self._constants = [name for name, each in removed.items() if not each.width]
        self._kept = {name: _key(revision.keep[name]) for name in removed if name in revision.keep}

    def apply(self, values: dict[str, Any]) -> None:
        for name, renamed in self._map.items():
            if name in values:
                values[name] = renamed.get(_key(values[name]), values[name])
        for name, value in self._fill.items():
            values.setdefault(name, value)
        for name in self._constants:
            values.pop(name, None)
        for name, kept in self._kept.items():
            if name in values and _key(values[name]) == kept:
                del values[name]

    # Fixed values of a request: a value, a list of values, or a range of a number.

    def mapped(self, name: str, dimension: Dimension, held: Any) -> Any:
        """Return fixed values with the new names of choices."""
        renamed = self._map.get(name)
        if renamed is None:
            return held
        if _is_value(dimension, held) or not is_list(held):
            return renamed.get(_key(held), held)
        return [renamed.get(_key(each), each) for each in held]

    def holds_when_removed(self, name: str, dimension: Dimension, held: Any) -> bool:
        """Return whether all points of the new problem have one of the fixed values of a removed parameter."""
        if name in self._constants:
            return True
        if name not in self._kept:
            return False
        kept = self.keep[name]
        if isinstance(held, Mapping):
            held = (held["low"], held["high"])
        if _is_value(dimension, held):
            return bool(_key(dimension.from_number(dimension.to_number(held))) == _key(kept))
        if isinstance(held, tuple) and choices_of(dimension) is None:
            return bool(held[0] <= kept <= held[1])
        return is_list(held) and any(_key(each) == _key(kept) for each in held)


def _is_value(dimension: Dimension, given: Any) -> bool:
    try:
        dimension.to_number(given)
    except ValueError:
        return False
    return True


def _converted(convert: Callable[[], T]) -> tuple[T | None, str | None]:
    """Return the result of a conversion, or the reason for its failure."""
    try:
        return convert(), None
    except (InvalidPoint, InvalidContext, InvalidFidelity) as error:
        return None, str(error)


def _key(value: Any) -> Any:
    """Return a key that is equal for equal values of a parameter. True differs from 1, and 1 equals 1.0."""
    return (type(value) is bool, type(value) is str, value)


class StageCarrier:
    """Carries what was read in the problem of one stage to the problem of the last stage; see `Carrier`."""

    def __init__(self, stages: Sequence[Stage], first: int) -> None:
        self._stages, self._first = stages, first
        self._converter = Converter(stages)
        self._problems = [stage.problem for stage in stages]
        #: The present problem.
        self.problem = self._problems[-1]
        #: The outcomes whose values were left out, with the numbers of the revisions that removed them.
        self.removed: dict[str, int] = {}

    def _carried(self, convert: Callable[[Converter], T]) -> T:
        """Return the result of a conversion. An error names the first revision with which the conversion fails."""
        try:
            return convert(self._converter)
        except (InvalidPoint, InvalidContext, InvalidFidelity, InvalidSetting) as error:
            raise type(error)(self._explained(str(error), convert)) from None

    def _explained(self, reason: str, convert: Callable[[Converter], object]) -> str:
        number = len(self._stages)
        for end in range(self._first + 2, number):
            try:
                convert(Converter(self._stages[:end]))
            except BelatedError:
                number = end
                break
        return f"{reason} (the arguments belong to revision {self._first + 1}, and revision {number} changed this)"

    def point(self, place: Place, record: TrialRecord) -> Place | None:
        if record.left_out is not None and record.era == self._first and record.place == place:
            return None  # the present problem lacks the point
        last = self._converter
        return self._carried(lambda each: each.run(self._first, place, record if each is last else None))

    def start(self, place: Place, context: list[float] | None) -> tuple[Place, list[float] | None]:
        given = list(context or ())
        found = self._carried(lambda each: each.start(self._first, place, given))
        return found[0], None if self.problem.context_space is None else found[1]

    def part(self, values: Mapping[str, Any], is_complete: bool) -> dict[str, Any]:
        return self._carried(lambda each: each.part(self._first, values, is_complete))

    def row(self, place: Place) -> Place:
        return self._carried(lambda each: each.place(self._first, place, measured=False))

    def fidelity(self, value: float | None) -> float | None:
        return self._carried(lambda each: each.fidelity_by_steps(self._first, value))

    def has_fidelity(self, value: float | None, record: TrialRecord) -> bool:
        problem, mine = record.era_of_fidelity, self._problems[self._first].fidelity
        known = self._problems[problem].fidelity_of(record.fidelity)
        if problem == len(self._problems) - 1:
            return self.fidelity(value) == known
        # The trial was left out.
        return value == (mine.high if known is None and mine is not None else known)

    def outcome(self, name: str) -> int:
        return self.outcomes([name])[name]

    def outcomes(self, names: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        removed: dict[str, int] = {}
        for given in names:
            name: str | None = given
            for number, problem in enumerate(self._problems[self._first + 1 :], self._first + 2):
                if not name and problem.outcomes:
                    name = problem.objective
                if problem.outcomes and name not in problem.outcomes:
                    removed[given] = number
                    break
            else:
                found[given] = list(self.problem.outcomes).index(name or "")
        if names and not found:
            raise InvalidValue(f"{removal_of(removed)} (nothing was changed)")
        self.removed |= removed
        return found

    def check_step(self, step: int) -> None:
        curve = self.problem.curve
        if curve is None or step > curve.steps:
            problems = enumerate(self._problems[self._first + 1 :], self._first + 2)
            number = next(n for n, each in problems if each.curve is None or step > each.curve.steps)
            what = "the curve was removed" if curve is None else f"step {step} was removed from the curve"
            raise InvalidValue(f"{what} by revision {number} (nothing was changed)")

    def refusal(self, error: InvalidPoint) -> InvalidPoint:
        return type(error)(
            f"{error} (the arguments belong to revision {self._first + 1}, and revision {len(self._stages)} is present)"
        )

    def request(self, request: Request) -> Request:
        """Return a request with the names and values of the present problem."""
        first = self._first
        context, fidelity, fixed, shared = request.read_in(self._problems[first])

        def convert(each: Converter) -> Request:
            new = each.new
            present = request._replace(
                context=each.context_of_request(first, context),
                fidelity=None if fidelity is None else each.fidelity_by_steps(first, fidelity),
                fixed=None if fixed is None else nested_fixed(new, each.fixed(first, request.fixed)),
                shared=None if shared is None else each.shared(first, request.shared),
                revision=None,
            )
            present.read_in(new)
            return present

        return self._carried(convert)


def nested_fixed(problem: Problem, fixed: dict[Any, Any]) -> Any:
    """Return fixed values by flat name in the form in which users pass them; None without values."""
    domain = problem.domain
    return (domain.nested(fixed) if isinstance(domain, Space) else fixed) or None


def removal_of(removed: Mapping[str, int]) -> str:
    """Return a text about outcomes that revisions removed, by name with the number of the revision."""
    texts = [
        f"the outcome {name!r} was removed by revision {number}"
        if name
        else f"revision {number} declared outcomes without an objective, so the value needs the name of its outcome: "
        "call sync, and pass the values as a dict {name: value}"
        for name, number in removed.items()
    ]
    return "; ".join(texts)


def converted(stages: Sequence[Stage], log: Log, numbers: Iterable[int], queue: Iterable[tuple[Place, bool]]) -> Any:
    """Return all trials and enqueued points in the problem of the last stage."""
    converter = Converter(stages)
    trials = [converter.trial(log.trial(number)) for number in numbers]
    points = []
    for place, partial in queue:
        try:
            points.append(converter.queued(place, partial))
        except InvalidPoint as error:
            raise InvalidSetting(
                f"an enqueued point is not a point of the new problem: {error}; suggest it first, and abandon the trial"
            ) from None
    return trials, points

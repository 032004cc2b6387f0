"""The base class of all optimizers: its arguments, methods for settings as in scikit-learn, and its core."""

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from belated import _core
from belated._core import Action, InvalidSetting
from belated.optimizers.actions import READERS_OF_ONE, READERS_OF_SEVERAL, Records
from belated.optimizers.constraints import Constraint, Constraints, checked_functions, linear_of
from belated.optimizers.curve import Curve, ModelStopping, Stopping, StoppingName, check_curve
from belated.optimizers.log import Limit
from belated.optimizers.names import ChecksKeywords
from belated.optimizers.outcomes import OutcomesLike, checked_outcomes, has_bounds, objectives
from belated.optimizers.problem import Problem, SpaceLike
from belated.optimizers.report import attrs_of_trials
from belated.optimizers.request import (
    Carrier,
    ReadRequest,
    Request,
    SuggestOptions,
    number_of_trials,
    read_request,
)
from belated.optimizers.trial import Trial
from belated.optimizers.trials import Trials
from belated.optimizers.values import annotations_of, as_data, checked, family_of
from belated.short_repr import short_repr
from belated.space.arguments import arguments_of, checks_arguments, in_seconds, shown, unknown_argument
from belated.space.candidates import CandidatesLike, NamedCandidates
from belated.space.fidelity import Fidelity
from belated.warn import warn

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(eq=False, repr=False)
class Optimizer(ChecksKeywords, Trials[_core.Optimizer]):
    """The base of all optimizers; use a subclass.

    `get_params` returns the constructor arguments, which cannot change after the first trial. Each argument is also an
    attribute of the same name, except that the attribute `pending` is the list of pending trials. Methods may be called
    from several threads. An optimizer can be pickled at any time, also while trials are pending. The unpickled copy
    makes the same suggestions as the original.
    """

    # The optimizers that studies support: name of the strategy in the core → class.
    registry: ClassVar[dict[str, "type[Optimizer]"]] = {}
    _strategy: ClassVar[str | None] = None
    _has_model = False

    space: SpaceLike | None = None
    _: KW_ONLY
    context: SpaceLike | None = None
    candidates: CandidatesLike | None = None
    constraints: Sequence[Constraint] | None = None
    fidelity: Fidelity | None = None
    clock: Literal["iterations", "seconds"] = "iterations"
    direction: Literal["maximize", "minimize"] = "maximize"
    seed: int | None = None
    time: Callable[[], float] | None = None
    curve: Curve | None = None
    stopping: Stopping | StoppingName | None = "auto"
    outcomes: OutcomesLike | None = None

    def __init_subclass__(cls, *, strategy: str | None = None, lacks: Collection[str] = ()) -> None:
        """Register a class.

        `strategy` is the name of its strategy in the core. `lacks` has the arguments that the class refuses; they are
        left out of its signature, its `get_params` and its stored definitions.
        """
        cls._lacks = cls._lacks | frozenset(lacks)
        if strategy is not None:
            cls._strategy = strategy
            Optimizer.registry[strategy] = cls

    def __post_init__(self) -> None:
        if self._strategy is None:
            raise InvalidSetting("Optimizer is the base class: use BayesOpt or RandomSearch")
        if self.constraints is not None and "constraints" in self._lacks:
            raise InvalidSetting(
                f"{type(self).__name__} does not support constraints: leave them out, pass as candidates the points "
                "that satisfy them, or use another optimizer"
            )
        types = annotations_of(Optimizer)
        names = ("clock", "direction", "seed")
        clock, direction, seed = (checked(getattr(self, name), types[name], name) for name in names)
        domain = (self.space, self.candidates, self.context)
        outcomes = checked_outcomes(self.outcomes, direction, self._has_model)
        self._check_front(objectives(outcomes))
        self._rule = self._checked_rule(has_bounds(outcomes))
        self._window = in_seconds(vars(self).get("window"))
        checked_functions(self.constraints)
        linear, curve = linear_of(self.constraints), self.curve
        kind, time = type(self).__name__, self.time
        self._problem = Problem(kind, *domain, self.fidelity, clock, direction, time, curve, linear, outcomes)
        vars(self)["direction"] = self._problem.direction
        if self.outcomes is not None:
            vars(self)["outcomes"] = dict(self.outcomes)  # the user may change the dict
        if isinstance(self.domain, NamedCandidates):
            vars(self)["candidates"] = self.domain  # the user may change the table, or unpickle without pandas
        self.seed_: int = int.from_bytes(os.urandom(8), "big") >> 1 if seed is None else seed
        self._constraints = Constraints.from_argument(self.constraints, self.domain)
        search = self._settings().get("search")
        for name in ("multistart", "direct"):
            if self._constraints is not None and getattr(search, name, None) is not None:
                raise InvalidSetting(f"search={search!r} does not support constraints: leave one out")
        self._token = os.urandom(16).hex()
        self._log = self._new_core()

    @property
    def _optimizer(self) -> "Optimizer":
        return self

    @property
    def _source(self) -> Trials[Any]:
        # `Study.optimizer` has the attribute ``_study``, the study.
        found: Trials[Any] = vars(self).get("_study", self)
        return found

    def _check_front(self, names: list[str]) -> None:
        """Check the arguments that do not support several objectives."""
        stopping = None if self.stopping == "auto" else self.stopping
        given = {"curve": self.curve, "stopping": stopping, "fidelity": self.fidelity}
        for name, value in given.items():
            if len(names) > 1 and value is not None:
                raise InvalidSetting(
                    f"{name}={short_repr(value)} is not usable with the objectives {names}: leave {name} out, or "
                    "optimise one objective, and give the others bounds"
                )

    def _checked_rule(self, has_bounds: bool) -> Stopping | None:
        """Check the arguments `curve` and `stopping`, and return the rule that they denote.

        `has_bounds` is True if an outcome has bounds.
        """
        name, curve, stopping = type(self).__name__, self.curve, self.stopping
        check_curve(curve)
        if curve is not None and "curve" in self._lacks:
            raise InvalidSetting(f"{name} does not support curves: leave curve out, or use BayesOpt or RandomSearch")
        if isinstance(stopping, str) and stopping == "auto":
            return ModelStopping() if curve is not None and self._has_model and not has_bounds else None
        if stopping is not None and curve is None:
            raise InvalidSetting(f"stopping={short_repr(stopping)} needs a curve: pass curve=bl.Curve(steps), too")
        rule: Stopping | None = checked(stopping, Stopping | None, "stopping")
        if isinstance(rule, ModelStopping) and not self._has_model:
            raise InvalidSetting(f"stopping={short_repr(stopping)} needs a model, and {name} has none: pass bl.ASHA()")
        if isinstance(rule, ModelStopping) and has_bounds:
            raise InvalidSetting(
                f"stopping={short_repr(stopping)} ignores the bounds of outcomes: pass stopping=bl.ASHA(), or None"
            )
        return rule

    def _new_core(self, rule: Stopping | None = None) -> _core.Optimizer:
        """Return the core of this optimizer with an empty log. `rule` replaces the rule that stops trials."""
        rule = rule or self._rule
        stopping = None if rule is None else json.dumps(as_data(rule))
        return _core.Optimizer(self._problem.core, self.seed_, json.dumps(self._strategy_data()), stopping)

    def _settings(self) -> dict[str, Any]:
        """Return the checked arguments of this kind of optimizer, without the arguments that all optimizers have.

        Strings and numbers are replaced by the values that they denote.
        """
        common = {field.name for field in fields(Optimizer)}
        names = [field.name for field in fields(self) if field.name not in common]
        return {name: checked(vars(self)[name], annotations_of(type(self))[name], name) for name in names}

    def _strategy_data(self) -> dict[str, Any]:
        """Return the strategy as JSON data for the core."""
        return {"kind": self._strategy} | {name: as_data(value) for name, value in self._settings().items()}

    @overload
    def suggest(
        self, n: None = None, context: Mapping[str, Any] | None = None, **options: "Unpack[SuggestOptions]"
    ) -> Trial: ...
    @overload
    def suggest(
        self, n: int, context: Mapping[str, Any] | None = None, **options: "Unpack[SuggestOptions]"
    ) -> list[Trial]: ...
    @checks_arguments
    def suggest(
        self,
        n: int | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        fidelity: float | None = None,
        fixed: Mapping[Any, Any] | None = None,
        shared: Sequence[Any] | None = None,
        attrs: Any = None,
    ) -> Trial | list[Trial]:
        """Start one or several trials, without waiting for pending trials.

        Parameters
        ----------
        n : int, optional
            The number of trials. If n is a number, a list is returned; if n is None, a single `Trial` is returned.
        context : mapping, optional
            Values by name. The context is required if a context space was declared; otherwise it is not allowed.
        fidelity : int or float, optional
            The fidelity of the trial in your units, if a fidelity was declared. Default None: the optimizer chooses the
            fidelity. The fidelity of an enqueued point takes precedence.
        fixed : mapping, optional
            Values that all of these trials have, by name: a value, a list of allowed values, or a range ``(low, high)``
            of a number. A name whose parameter has conditions also restricts the parameters of its conditions. For
            candidates, the names are column numbers. The next enqueued point is used if it has these values; otherwise
            it stays in the queue. The model is the same as without fixed values.
        shared : sequence of str, optional
            Names of parameters that have one value in all of these trials, such as the temperature of an oven. The
            first trial is suggested as without `shared`, and the others with its values as `fixed`. Parameters with
            conditions cannot be shared.
        attrs : mapping or list of mappings, optional
            Data to store with the trials, such as wells or lots; one mapping for all trials, or one for each. See
            `observe`.

        Returns
        -------
        Trial or list of Trial

        Raises
        ------
        InvalidContext
            The context is missing, was not declared, or is out of its space.
        InvalidFidelity
            The fidelity was not declared, or is out of its range.
        InvalidPoint
            A fixed name is unknown, its value is not in the space, or no point has all fixed values.
        InvalidSetting
            n is not an integer >= 0, a shared name is unknown or has conditions, the optimizer does not support
            `fixed` and `shared`, or a constraint raises an exception or returns neither True nor False.
        InvalidSpace
            The search did not find a point that satisfies the constraints.

        Examples
        --------
        >>> import belated as bl
        >>> optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
        >>> [trial.number for trial in optimizer.suggest(n=3)]
        [0, 1, 2]

        The oven stays at 60 degrees today:

        >>> optimizer = bl.BayesOpt({"T": (20.0, 90.0), "x": (0.0, 1.0)}, seed=0)
        >>> [trial.params["T"] for trial in optimizer.suggest(n=3, fixed={"T": 60.0})]
        [60.0, 60.0, 60.0]
        >>> len({trial.params["T"] for trial in optimizer.suggest(n=3, shared=["T"])})
        1
        """
        wanted = 1 if n is None else number_of_trials(n)
        read = read_request(self._problem, context, fidelity, fixed, shared)
        texts = () if attrs is None else attrs_of_trials(attrs, wanted)
        numbers = self._start_read(wanted, read) if wanted else []
        for number, text in zip(numbers, texts, strict=False):
            if text is not None:
                self._log.record(Action.note(number, text, None), self._problem.wall_time())
        return self._started(numbers, n is None)

    def _start_trials(self, request: Request, *, limit: Limit | None = None) -> list[int]:
        """Start trials. `limit` is the limit of the run, and the share of it that has been used."""
        return self._start_read(request.n, request.read_in(self._problem), limit=limit)

    def _start_read(self, n: int, read: ReadRequest, *, limit: Limit | None = None) -> list[int]:
        context, fidelity, fixed, shared = read
        time = self._problem.wall_time()
        return self._log.suggest(n, context, time, self._constraints, fidelity, limit, fixed, shared)

    def _submit(
        self,
        verb: str,
        trial: Any,
        given: tuple[Any, ...] = (),
        revision: int | None = None,
        key: str | None = None,
        notice: Callable[[str], None] = warn,
    ) -> list[int | None]:
        actions = READERS_OF_SEVERAL[verb](self._problem, self._log, None, trial, *given)
        time = self._problem.wall_time()
        if len(actions) == 1:
            return [self._log.record(actions[0], time, self._warn_of_mark)]
        if trial is not None:  # the actions of `add` and `enqueue` were checked
            for action in actions:
                self._log.validate(action, time)
        return self._record_all(actions, time)

    def _record_all(self, actions: Sequence[Action], time: float | None) -> list[int | None]:
        """Log actions, and then warn of marked values, because a warning may be an error."""
        marked: list[tuple[int, tuple[int, float, float, float]]] = []
        numbers = [self._log.record(each, time, lambda *mark: marked.append(mark)) for each in actions]
        for number, mark in marked:
            self._warn_of_mark(number, mark)
        return numbers

    def _submit_one(self, verb: str, trial: Any, given: tuple[Any, ...] = (), *more: Any) -> None:
        action = READERS_OF_ONE[verb](self._problem, self._log, None, trial, *given)
        self._log.record(action, self._problem.wall_time(), self._warn_of_mark)

    def _record_from(
        self,
        read: Callable[[Problem, Records, Carrier | None], list[Action]],
        revision: int | None,
        *,
        fits: bool = False,
    ) -> list[int | None]:
        return self._record_all(read(self._problem, self._log, None), self._problem.wall_time())

    def _status(self) -> Any:
        """Return the state of the strategy (rounds or trees) as JSON data."""
        time = self._source._problem.wall_time()
        return json.loads(self._source._current_log().status(time) or "null")

    # Methods for settings, as in scikit-learn.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor arguments by name.

        Parameters
        ----------
        deep : bool, default True
            Whether to include the fields of the values, such as ``surrogate__kernel``.
        """
        params = {name: vars(self)[name] for name in arguments_of(type(self), private=True)}
        if deep:
            for name, value in self._settings().items():
                if value is not None and family_of(type(self), name) is not None:
                    params |= {f"{name}__{field.name}": getattr(value, field.name) for field in fields(value)}
        return params

    def set_params(self, **params: Any) -> "Optimizer":
        """Change constructor arguments, or fields of their values (``surrogate__kernel``), before the first trial.

        Raises
        ------
        InvalidSetting
            The optimizer already has trials or enqueued points, or an argument is unknown or invalid.
        """
        if self._log.n_events():
            raise InvalidSetting("set_params comes too late: there are trials already; make a new optimizer instead")
        # First make a new optimizer: an invalid argument then raises an error before this optimizer is changed.
        given = self.get_params(deep=False)
        if params.get("outcomes") is not None:
            given.pop("direction", None)  # the goals of the new outcomes have directions
        arguments = with_nested(type(self), given, params)
        # Reuse unchanged spaces, because reading them again would repeat their warnings.
        read = {"space": self.domain, "context": self.context_space}
        kept = {name: given[name] for name in read if given.get(name) is not None and arguments[name] is given[name]}
        made = type(self)(**(arguments | {name: read[name] for name in kept}))
        vars(self).update(vars(made) | kept)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dataclass_fields__:
            super().__setattr__(name, value)
        elif "_log" in vars(self):
            raise InvalidSetting(f"{name} cannot be assigned: use set_params, before the first trial")
        else:
            vars(self)[name] = value

    def __getstate__(self) -> dict[str, Any]:
        # `_constraints` comes before `constraints`, because pickling it checks that the functions can be pickled.
        return {"_constraints": self._constraints} | vars(self) | {"_log": self._log.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"_log": _core.Optimizer.from_bytes(state["_log"])})

    def __repr__(self) -> str:
        return shown(self, candidates=self.domain)


def with_nested(cls: type[Optimizer], arguments: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return `arguments` updated by `params`; a name of the form ``argument__field`` sets a field of a value."""
    result = dict(arguments)
    nested: dict[str, dict[str, Any]] = {}
    known = {*arguments_of(cls, private=True), *cls._lacks}
    for name, value in params.items():
        argument, separator, field = name.partition("__")
        if argument not in known or (separator and family_of(cls, argument) is None):
            raise unknown_argument(name, value, f"an argument of {cls.__name__}", cls, nested=True)
        if separator:
            nested.setdefault(argument, {})[field] = value
        else:
            result[name] = value
    for argument, changes in nested.items():
        given = result.get(argument, cls.__dataclass_fields__[argument].default)
        value = checked(given, annotations_of(cls)[argument], argument)
        if value is None:
            names = [f"{argument}__{field}" for field in changes]
            raise InvalidSetting(f"{names} are fields of a value, but {argument} is None: pass it too")
        for field, change in changes.items():
            if field not in arguments_of(type(value), private=True):
                name, kind = f"{argument}__{field}", type(value)
                raise unknown_argument(name, change, f"a field of {kind.__name__}", cls, current=kind)
        result[argument] = replace(value, **changes)
    return result

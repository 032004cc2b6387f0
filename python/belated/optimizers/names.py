"""Advice on unknown names of arguments and attributes: the name to write instead."""

import dataclasses
import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

from belated._core import InvalidSetting
from belated.short_repr import short_repr

Method = TypeVar("Method", bound=Callable[..., Any])


class UnknownArgument(InvalidSetting, TypeError):
    """A function or class does not have the argument; the message names a replacement."""


# The arguments of `maximize` and `minimize` that are not arguments of the optimizer.
RUN_ARGUMENTS = (
    *("f", "space", "candidates", "optimizer", "n_trials", "n_trials_total", "timeout", "budget"),
    *("n_workers", "executor", "processes", "retries", "retry_pending", "catch", "callbacks", "progress"),
)

_NO_PRUNING = "belated does not prune by intermediate values: leave it out"
_NO_SEARCH_OPTIONS = "belated chooses how the acquisition is maximized: leave it out"
_POINTS = (
    "make the optimizer first, call its enqueue(params) for points to evaluate, or its add(params, value) where the "
    "value is known, and pass it as optimizer="
)
_STOPPERS = "pass callbacks=[bl.NoImprovement(n)] or callbacks=[bl.ValueReached(value)]"
_STUDIES = "bl.Study(name, store, optimizer) keeps trials in a store: pass it as optimizer="

# Names of arguments in other packages, and their replacements in belated. A replacement is an argument, a field of a
# value as ``Class.field``, or advice in words. The packages are scikit-learn, scikit-optimize, bayesian-optimization,
# Optuna, Ax, BoTorch, Ray Tune, Hyperopt and SciPy.
ELSEWHERE = {
    **dict.fromkeys(("random_state", "rng", "random_seed", "rstate"), "seed"),
    **dict.fromkeys(("bounds", "pbounds", "dimensions", "search_space", "parameters", "param_space"), "space"),
    **dict.fromkeys(("param_distributions", "param_grid", "distributions", "config", "domain"), "space"),
    "choices": "candidates",
    **dict.fromkeys(("maximize", "minimize", "mode"), "direction"),
    # Arguments of a run.
    **dict.fromkeys(("func", "fn", "fun", "function", "objective", "objective_function", "trainable"), "f"),
    **dict.fromkeys(("n_iter", "n_calls", "max_evals", "num_samples", "total_trials", "max_trials"), "n_trials"),
    **dict.fromkeys(("num_trials", "n_iterations", "max_iter", "maxiter", "n_evals"), "n_trials"),
    **dict.fromkeys(("n_jobs", "workers", "max_workers", "num_workers", "n_parallel", "parallelism"), "n_workers"),
    **dict.fromkeys(("max_concurrent", "max_concurrent_trials", "n_threads"), "n_workers"),
    **dict.fromkeys(("timeout_seconds", "time_budget", "time_budget_s", "time_limit", "max_time"), "timeout"),
    **dict.fromkeys(("verbose", "verbosity", "disp", "show_progress_bar", "progress_bar", "progressbar"), "progress"),
    **dict.fromkeys(("study", "algo", "search_alg"), "optimizer"),
    **dict.fromkeys(("x0", "y0", "points_to_evaluate", "evaluated_rewards", "initial_points"), _POINTS),
    **dict.fromkeys(("study_name", "storage", "load_if_exists"), _STUDIES),
    **dict.fromkeys(("stop", "stopper", "early_stopping", "early_stop_fn", "no_progress_fn", "patience"), _STOPPERS),
    **dict.fromkeys(("loss_threshold", "target_value"), _STOPPERS),
    **dict.fromkeys(("pruner", "scheduler"), _NO_PRUNING),
    "trials": "the result has them as result.trials, and optimizer= continues with earlier ones: leave it out",
    "directions": "belated has one objective: maximize or minimize one number made of them",
    # Arguments of an optimizer.
    **dict.fromkeys(("acq", "acq_func", "acquisition_function", "utility_function", "sampler"), "acquisition"),
    **dict.fromkeys(("acq_optimizer", "acq_optimizer_kwargs", "optimizer_kwargs"), _NO_SEARCH_OPTIONS),
    "x_pending": "pending",
    **dict.fromkeys(("base_estimator", "estimator", "model", "gp"), "surrogate"),
    **dict.fromkeys(("n_initial_points", "n_startup_trials", "n_startup_jobs", "n_random_starts"), "initial"),
    **dict.fromkeys(("num_initialization_trials", "init_points", "n_init"), "initial"),
    "initial_point_generator": "Initial.how",
    **dict.fromkeys(("parameter_constraints", "constraint", "constraints_func", "space_constraint"), "constraints"),
    "xi": "belated's LogEI has no margin xi: leave it out",
    "kappa": "UCB.beta",
    "length_scale": "GP.lengthscale",
    "alpha": "GP.noise_std",
    "noise_level": "GP.noise_std",
    "outputscale": "GP.signal_std",
    "n_restarts_optimizer": "GP.n_restarts",
    "normalize_y": "GP.targets",
    "num_fantasies": "Integrate.n",
    "noise": "GP.noise_std",
}

# Attributes of optimizers, studies and results in other packages, and their replacements in belated.
_ATTRIBUTES_ELSEWHERE = {
    **dict.fromkeys(("ask", "get_next_trial", "get_next_trials", "generate", "next_point"), "suggest()"),
    **dict.fromkeys(("tell", "register", "complete_trial", "report", "record"), "observe(trial, value)"),
    **dict.fromkeys(("add_trial", "add_trials", "attach_trial"), "add(params, value)"),
    **dict.fromkeys(("probe", "enqueue_trial", "queue"), "enqueue(params)"),
    **dict.fromkeys(("mark_trial_failed", "log_trial_failure"), "fail(trial)"),
    **dict.fromkeys(("maximize", "optimize", "run", "fit", "fmin"), "bl.maximize(f, optimizer=…, n_trials=…)"),
    "minimize": "bl.minimize(f, optimizer=…, n_trials=…)",
    **dict.fromkeys(("best_params", "best_parameters", "get_best_parameters", "best_config", "x"), "best_params_"),
    **dict.fromkeys(("best_value", "best_score_", "best_f", "fun", "best_loss"), "best_value_"),
    **dict.fromkeys(("best_trial", "best_result", "get_best_trial", "max", "min"), "best_trial_"),
    **dict.fromkeys(("res", "get_trials", "history", "results", "xi", "yi"), "trials"),
    **dict.fromkeys(("x_iters", "func_vals", "dataframe", "get_trials_data_frame"), "trials_dataframe()"),
}


# Names of values in other packages and in papers, and their replacements in belated.
VALUES_ELSEWHERE = {
    **dict.fromkeys(("ei", "logei", "qei", "nei", "expected_improvement", "log_expected_improvement"), "log_ei"),
    **dict.fromkeys(("lcb", "gp_ucb", "gp-ucb", "upper_confidence_bound"), "ucb"),
    **dict.fromkeys(("ts", "thompson_sampling"), "thompson"),
    **dict.fromkeys(("constant_liar", "cl_min", "cl_mean", "cl_max"), "liar"),
    **dict.fromkeys(("kriging_believer", "believer"), "hallucinate"),
    **dict.fromkeys(("fantasize", "fantasies", "fantasy"), "integrate"),
}


def checks_arguments(method: Method) -> Method:
    """Decorate a method: its error for an unknown keyword then names the public class and the known keywords."""
    known = list(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
                raise UnknownArgument(
                    f"{name}={short_repr(kwargs[name])} is not an argument of {type(self).__name__}.{method.__name__}: "
                    + (f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}")
                )
        return method(self, *args, **kwargs)

    return cast(Method, call)


def family_of(cls: type, argument: str) -> Any:
    """Return the base class of the values that an argument takes, or None if the argument takes plain data."""
    # A class that is not a dataclass does not have fields.
    fields = {field.name: field for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else {}
    return fields[argument].metadata.get("takes") if argument in fields else None


def _nested(cls: type) -> Iterator[tuple[str, str, str]]:
    """Yield (argument, class of a value, field) for each field of each value that an argument of `cls` can take."""
    for argument in inspect.signature(cls).parameters:
        family = family_of(cls, argument)
        if family is not None:
            for kind in family.shorthand.values() or (family,):
                for field in inspect.signature(kind).parameters:
                    yield argument, kind.__name__, field


def advice_on(name: str, cls: type, *, nested: bool = False, more: Iterable[str] = ()) -> str:
    """Return advice on an unknown argument of a class: the name to write instead, or the known names.

    `nested` is True for calls that accept names of the form ``argument__field``. `more` has the names of further
    arguments of the call.
    """
    known = list(dict.fromkeys([*more, *inspect.signature(cls).parameters]))  # both may contain `space`
    exact = _exact_argument(name, cls, known, nested)
    if exact:
        return f"did you mean {exact}?"
    wanted = ELSEWHERE.get(name.lower(), name)
    if " " in wanted:
        return wanted
    if wanted in RUN_ARGUMENTS:
        return f"{wanted} is an argument of bl.maximize and bl.minimize"
    near = _close_argument(name, cls, known, nested)
    return f"did you mean {near}?" if near else f"it has {', '.join(known) or 'no arguments'}"


def nearest_argument(name: str, cls: type) -> str | None:
    """Return the argument of a class, or the field of its value, that most probably replaces an unknown name."""
    known = list(inspect.signature(cls).parameters)
    return _exact_argument(name, cls, known, False) or _close_argument(name, cls, known, False)


def _exact_argument(name: str, cls: type, known: list[str], nested: bool) -> str | None:
    """Return the argument or field that has this name in another package, or the field that has this name here."""
    known, name, fields = _within(name, cls, known)
    for wanted in (ELSEWHERE.get(name.lower()), name):
        if wanted in known:
            return wanted
        if wanted is not None:
            kind, _, own = wanted.rpartition(".")
            if kind == cls.__name__:
                return own
            for each in fields:
                if each[2] == own and kind in ("", each[1]):
                    return _written(*each, nested)
    return None


def _close_argument(name: str, cls: type, known: list[str], nested: bool) -> str | None:
    """Return the argument or field with the most similar name, or None."""
    known, name, fields = _within(name, cls, known)
    near = difflib.get_close_matches(name, known + [field for _, _, field in fields], n=1)
    if not near or near[0] in known:
        return near[0] if near else None
    return _written(*next(each for each in fields if each[2] == near[0]), nested)


def _within(name: str, cls: type, known: list[str]) -> tuple[list[str], str, list[tuple[str, str, str]]]:
    """Return the arguments to search, the name to search for, and the fields to search.

    For a name of the form ``argument__field``, only the fields of this argument are searched.
    """
    fields = list(_nested(cls))
    argument, _, field = name.partition("__")
    if field and argument in known:
        return [], field, [each for each in fields if each[0] == argument]
    return known, name, fields


def _written(argument: str, kind: str, field: str, nested: bool) -> str:
    return f"{argument}__{field}" if nested else f"{argument}=bl.{kind}({field}=…)"


class AttributeHints:
    """A base class whose error for an unknown public attribute names the member to use."""

    # Hide this method from type checkers: they would allow any attribute.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            cls = type(self)
            if hasattr(cls, name):
                # The attribute exists, so its property raised an AttributeError: raise this error again.
                return object.__getattribute__(self, name)
            message = f"{cls.__name__!r} object has no attribute {name!r}"
            known = {each for each in [*dir(cls), *vars(self)] if not each.startswith("_")}
            raise AttributeError(message if name.startswith("_") else message + _attribute_advice(name, known))


def _attribute_advice(name: str, known: set[str]) -> str:
    """Return the end of the message for an unknown attribute; `known` has the public members of the object.

    The result is empty if the name is not in the table and is not similar to a known name.
    """
    advice = _ATTRIBUTES_ELSEWHERE.get(name.lower())
    if advice is None:
        near = difflib.get_close_matches(name, sorted(known), n=1)
        return f": did you mean {near[0]}?" if near else ""
    # A result does not have all members of an optimizer; the advice then starts with "optimizer.".
    own = "." in advice or advice.partition("(")[0] in known or "optimizer" not in known
    return f": use {'' if own else 'optimizer.'}{advice}"

"""Replacements for names and dimensions of other packages. This module is loaded only when an error needs advice."""

import difflib
import inspect
import math
import sys
import typing
from collections.abc import Collection, Iterable
from typing import Any

# The arguments of `maximize` and `minimize` that are not arguments of the optimizer.
RUN_ARGUMENTS = (
    *("f", "space", "candidates", "optimizer", "n_trials", "n_trials_total", "timeout", "budget"),
    *("n_workers", "executor", "processes", "retries", "retry_pending", "catch", "callbacks", "progress", "fixed"),
)

_STOPPING = "pass curve=bl.Curve(steps), and stopping=bl.ASHA() or bl.MedianStopping() for another rule"
_NO_SEARCH_OPTIONS = "belated chooses how the acquisition is maximized: leave it out"
_POINTS = (
    "make the optimizer first, call its enqueue(params) for points to evaluate, or its add(params, value) where the "
    "value is known, and pass it as optimizer="
)
_STOPPERS = "pass callbacks=[bl.NoImprovement(n)] or callbacks=[bl.ValueReached(value)]"
_STUDIES = "bl.Study(name, store, optimizer) keeps trials in a store: pass it as optimizer="
_MEASURED = (
    "constraints= has functions of the params, which return True if the params are allowed; for a bound on a measured "
    'number, declare outcomes={"error": "minimize", "memory": bl.AtMost(4.0)} and return a mapping of both; if a '
    "measured value is not allowed, raise an exception in f and name its class in catch=, or call fail(trial): the "
    "model learns where trials fail"
)


def _by_name(names: dict[str, str]) -> dict[str, str]:
    """Convert a dict of replacement → names, separated by spaces, to a dict of name → replacement."""
    return {name: replacement for replacement, listed in names.items() for name in listed.split()}


# Names of arguments in other packages, and their replacements in belated. A replacement is an argument, a field of a
# value (written ``Class.field``), or advice in words. The packages are scikit-learn, scikit-optimize,
# bayesian-optimization, Optuna, Ax, BoTorch, Ray Tune, Hyperopt and SciPy.
ELSEWHERE = _by_name(
    {
        "seed": "random_state rng random_seed rstate",
        "space": "bounds pbounds dimensions search_space parameters param_space param_distributions param_grid "
        "distributions config domain",
        "candidates": "choices",
        "direction": "maximize minimize mode",
        # Arguments of a parameter.
        "Real.log": "prior scale log_scale",
        "Real.step": "q quantization",
        # Arguments of a run.
        "f": "func fn fun function objective objective_function trainable",
        "n_trials": "n_iter n_calls max_evals num_samples total_trials max_trials num_trials n_iterations max_iter "
        "maxiter n_evals",
        "n_workers": "n_jobs workers max_workers num_workers n_parallel parallelism max_concurrent "
        "max_concurrent_trials n_threads",
        "timeout": "timeout_seconds time_budget time_budget_s time_limit max_time",
        "progress": "verbose verbosity disp show_progress_bar progress_bar progressbar",
        "optimizer": "study algo search_alg sampler",
        _POINTS: "x0 y0 points_to_evaluate evaluated_rewards initial_points",
        _STUDIES: "study_name storage load_if_exists",
        _STOPPERS: "stop stopper early_stopping early_stop_fn no_progress_fn patience loss_threshold target_value",
        _STOPPING: "pruner scheduler",
        "leave it out: result.trials has the trials, and optimizer= continues earlier trials": "trials",
        'declare the goals by outcomes={"loss": "minimize", "accuracy": "maximize"}': "directions",
        # Arguments of an optimizer.
        "acquisition": "acq acq_func acquisition_function utility_function",
        _NO_SEARCH_OPTIONS: "acq_optimizer acq_optimizer_kwargs optimizer_kwargs",
        "pending": "x_pending",
        "surrogate": "base_estimator estimator model gp",
        "initial": "n_initial_points n_startup_trials n_startup_jobs n_random_starts num_initialization_trials "
        "init_points n_init",
        "Initial.how": "initial_point_generator",
        "constraints": "parameter_constraints space_constraint",
        _MEASURED: "constraint constraints_func outcome_constraints",
        "belated's LogEI has no margin xi: leave it out": "xi",
        "UCB.beta": "kappa",
        "GP.lengthscale": "length_scale",
        "GP.noise_std": "alpha noise_level noise",
        "GP.signal_std": "outputscale",
        "GP.n_restarts": "n_restarts_optimizer",
        "GP.targets": "normalize_y",
        "Integrate.n": "num_fantasies",
    }
)

# Attributes of optimizers, studies and results in other packages, and their replacements in belated.
_ATTRIBUTES_ELSEWHERE = _by_name(
    {
        "suggest()": "ask get_next_trial get_next_trials generate next_point",
        "observe(trial, value)": "tell register complete_trial report record",
        "add(params, value)": "add_trial add_trials attach_trial",
        "enqueue(params)": "probe enqueue_trial queue",
        "fail(trial)": "mark_trial_failed log_trial_failure",
        "bl.maximize(f, optimizer=…, n_trials=…)": "maximize optimize run fit fmin",
        "bl.minimize(f, optimizer=…, n_trials=…)": "minimize",
        "best_params_": "best_params best_parameters get_best_parameters best_config x",
        "best_value_": "best_value best_score_ best_f fun best_loss",
        "best_trial_": "best_result get_best_trial max min",
        "pareto_": "best_trials pareto_front pareto_frontier get_pareto_optimal_parameters",
        "trials": "res get_trials history results xi yi",
        "trials_dataframe()": "x_iters func_vals dataframe get_trials_data_frame",
    }
)

# Names of values in other packages and in papers, and their replacements in belated.
_VALUES_ELSEWHERE = _by_name(
    {
        "log_ei": "ei logei qei nei expected_improvement log_expected_improvement",
        "ucb": "lcb gp_ucb gp-ucb upper_confidence_bound",
        "thompson": "ts thompson_sampling",
        "liar": "constant_liar cl_min cl_mean cl_max",
        "hallucinate": "kriging_believer believer",
        "integrate": "fantasize fantasies fantasy",
    }
)

# Methods of other packages without a counterpart in belated, and what to use instead. The names are in lower case and
# have letters and digits only.
_METHODS_ELSEWHERE = _by_name(
    {
        "belated has no forests or boosted trees: bl.BayesOpt fits a Gaussian process, and bl.RandomSearch and "
        "bl.TreeSearch have no model": "rf et gbrt forest randomforest extratrees forestminimize gbrtminimize",
        "belated has no evolutionary algorithms: use bl.BayesOpt, or the package cma if f is cheap and has no noise": (
            "cma cmaes nsgaii nsgaiii de differentialevolution genetic pso"
        ),
        "belated has no TPE: use bl.BayesOpt": "tpe",
        "use bl.RandomSearch(space)": "random randomsearch",
        "use bl.BayesOpt(space)": "bayes bayesian bayesopt bayesianoptimization",
        "use bl.TreeSearch(space)": "tree treesearch",
        "belated has no Hyperband: pass curve=bl.Curve(steps) and stopping=bl.ASHA()": "hyperband bohb dehb",
    }
)

# Functions and classes of other packages, and their replacements in belated.
_NAMES_ELSEWHERE = _by_name(
    {
        "bl.minimize(f, space, n_trials=…)": "gp_minimize fmin",
        "bl.RandomSearch(space)": "RandomSampler dummy_minimize",
        "bl.BayesOpt(space)": "BayesianOptimization GPSampler AxClient",
        "bl.Study(name, store, optimizer), or bl.maximize and bl.minimize without a store": "create_study",
        "bl.Study.load(name, store)": "load_study",
        "belated.integrations.sklearn.BelatedSearchCV": "BayesSearchCV RandomizedSearchCV GridSearchCV",
    }
)


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that is most similar to `name`, or None if all known names differ strongly from it."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)


def argument_advice(
    name: str,
    cls: type,
    *,
    nested: bool = False,
    more: Iterable[str] = (),
    passed_on: Collection[str] | None = None,
    current: type | None = None,
) -> str:
    """Return advice on an unknown argument of a class: the name to write instead, or the known names.

    `nested` is True for calls that accept names of the form ``argument__field``. `more` has the names of further
    arguments of the call. If the call makes an optimizer of the class, `passed_on` has the arguments of the class that
    the call takes. If the name is ``argument__field``, `current` may be the class of the argument's value. The field
    must then be a field of this class.
    """
    own = list(inspect.signature(cls).parameters)
    known = dict.fromkeys([*more, *(own if passed_on is None else passed_on)])
    argument, _, field = name.partition("__")
    options = {each: each for each in known}
    if field and argument in known:
        name, options, arguments = field, {}, [argument]
    else:
        arguments = own
        options |= {each: f"optimizer=bl.{cls.__name__}(…, {each}=…)" for each in own if each not in known}
        options |= {f"{cls.__name__}.{each}": options[each] for each in own}
    for each in arguments:
        for kind in sorted(_kinds(cls, each), key=lambda kind: kind is not current):
            for entry in inspect.signature(kind).parameters:
                by_name = kind is current if current else nested
                module = "bl" if kind.__name__ in sys.modules["belated"].__all__ else "bl.papers"
                option = f"{each}__{entry}" if by_name else f"{each}={module}.{kind.__name__}({entry}=…)"
                if passed_on is not None and each not in known:
                    option = f"optimizer=bl.{cls.__name__}(…, {option})"
                options.setdefault(entry, option)
                options[f"{kind.__name__}.{entry}"] = option
    replacement = ELSEWHERE.get(name.lower(), name)
    # `Integer` has the arguments of `Real`.
    found = options.get(replacement) or options.get(replacement.removeprefix("Real.")) or options.get(name)
    if found is None:
        if " " in replacement:
            return replacement
        if replacement in RUN_ARGUMENTS:
            return f"{replacement} is an argument of bl.maximize and bl.minimize"
        found = options.get(nearest(name, (each for each in options if "." not in each)) or "")
    return f"did you mean {found}?" if found else f"it has {', '.join(known) or 'no arguments'}"


def _kinds(cls: type, argument: str) -> Iterable[type]:
    """Return the classes of the values that an argument accepts; the result is empty if values are plain data."""
    hint = typing.get_type_hints(cls).get(argument)
    families = [part for part in typing.get_args(hint) or (hint,) if hasattr(part, "shorthand")]
    return families and (families[0].shorthand.values() or families)


def attribute_advice(name: str, known: Iterable[str]) -> str:
    """Return the end of the message for an unknown attribute; `known` has the public members of the object.

    The result is empty if the name is neither in the table of other packages' attributes nor similar to a known name.
    """
    advice = _ATTRIBUTES_ELSEWHERE.get(name.lower())
    if advice is None:
        near = nearest(name, sorted(known))
        return f": did you mean {near}?" if near else ""
    # The result of a run lacks some members of its optimizer. The advice for these members is ``optimizer.member``.
    own = "." in advice or advice.partition("(")[0] in known or "optimizer" not in known
    return f": use {'' if own else 'optimizer.'}{advice}"


def module_advice(name: str, known: Iterable[str]) -> str:
    """Return the end of the message for an unknown name of the package; `known` has the names of the package."""
    method, elsewhere = method_advice(name), _NAMES_ELSEWHERE.get(name)
    if method or elsewhere:
        return f": {method or f'use {elsewhere}'}"
    near = nearest(name, known, cutoff=0.8)
    return f": did you mean {near}?" if near else ""


def method_advice(name: Any) -> str:
    """Return what to use in place of a method that belated lacks, or "" for other names."""
    plain = "".join(filter(str.isalnum, name.lower())) if isinstance(name, str) else ""
    return _METHODS_ELSEWHERE.get(plain.removesuffix("sampler"), "")


def optimizer_advice(given: Any) -> str:
    """Return ``; `` and the optimizer to write instead of a class or a name, or "" for other objects."""
    return value_advice(given.__name__ if isinstance(given, type) else given, ())


def value_advice(value: Any, words: Iterable[str]) -> str:
    """Return ``; `` and advice on a value, or "" if the value resembles neither a known method nor one of `words`."""
    if not isinstance(value, str):
        return ""
    method = method_advice(value)
    if method:
        return f"; {method}"
    words, name = list(words), value.lower()
    elsewhere = _VALUES_ELSEWHERE.get(name)
    near = elsewhere if elsewhere in words else nearest(name, words)
    return f"; did you mean {near!r}?" if near else ""


def dimension_advice(given: Any) -> str | None:
    """Return advice on a dimension of another package, or None for other objects.

    The dimension is recognised by the module of its class. Its package is not imported.
    """
    package = type(given).__module__.partition(".")[0]
    if package not in ("optuna", "skopt", "ray", "hyperopt", "scipy"):
        return None
    read = {"hyperopt": _of_hyperopt, "scipy": _of_scipy}.get(package, _of_attributes)
    try:
        written = read(given)
    except Exception:  # other versions of the package may have other attributes; then give general advice
        written = None
    return f"it is one of {package}'s; write {written or 'bl.Real, bl.Integer or bl.Categorical of the same values'}"


def _range(low: Any, high: Any, *, log: bool = False, step: Any = None, whole: bool = False) -> str | None:
    """Return a range as source code, or None if a bound is infinite."""
    number = int if whole else float
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    has_step = bool(step) and not (whole and step == 1)
    if log and has_step and not math.isclose(low, step * round(low / step), rel_tol=1e-9):
        has_step = False  # on a logarithmic scale, the values of belated are multiples of the step
    options = (", log=True" if log else "") + (f", step={step}" if has_step else "")
    return f"bl.{'Integer' if whole else 'Real'}({number(low)!r}, {number(high)!r}{options})"


def _of_attributes(given: Any) -> str | None:
    """Return the equivalent of a dimension of Optuna, scikit-optimize or Ray; read the attributes of the dimension."""
    for name in ("choices", "categories"):
        if hasattr(given, name):
            return f"bl.Categorical({list(getattr(given, name))!r})"
    sampler = given.get_sampler() if hasattr(given, "get_sampler") else None
    step = getattr(given, "step", None) or getattr(sampler, "q", None)
    scale = type(getattr(sampler, "sampler", sampler)).__name__ + getattr(given, "prior", "")
    log, whole = "log" in scale.lower() or getattr(given, "log", False), "Int" in type(given).__name__
    if sampler is None:
        return _range(given.low, given.high, log=log, step=step, whole=whole)
    # In Ray the upper bound of integers is excluded unless the domain has a step.
    high = given.upper - 1 if whole and not step else given.upper
    return _range(given.lower, high, log=log, step=step, whole=whole)


def _of_hyperopt(given: Any) -> str | None:
    """Return the equivalent of a Hyperopt graph. The node that draws the value may be inside other nodes."""
    nodes = [given]
    while nodes:
        node = nodes.pop(0)
        arguments = [each.obj for each in node.pos_args if hasattr(each, "obj")]
        if node.name in ("uniform", "quniform"):
            return _range(*arguments[:2], step=arguments[2] if node.name == "quniform" else None)
        if node.name in ("loguniform", "qloguniform"):
            return _range(*(float(f"{math.exp(bound):.12g}") for bound in arguments[:2]), log=True)
        if node.name == "randint":
            low, high = arguments if len(arguments) == 2 else (0, arguments[0])
            return _range(low, high - 1, whole=True)
        if node.name == "switch":
            return f"bl.Categorical({[each.obj for each in node.pos_args[1:]]!r})"
        nodes += node.pos_args
    return None


def _of_scipy(given: Any) -> str | None:
    name = given.dist.name
    return _range(*given.support(), log=name in ("loguniform", "reciprocal"), whole=name == "randint")

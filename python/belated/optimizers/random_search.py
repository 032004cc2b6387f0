"""Uniformly random suggestions."""

from dataclasses import dataclass

from belated.optimizers.optimizer import Optimizer


@dataclass(eq=False, repr=False)
class RandomSearch(Optimizer, strategy="RandomSearch"):
    """Random search: uniformly random suggestions, as a baseline for other optimizers.

    If the domain has at most 100,000 points, a point is suggested again only after all points have been suggested.

    Parameters
    ----------
    space : mapping, optional
        Name → `Real`, `Integer`, `Ordinal`, `Categorical`, a constant, or a shorthand for one of these; or a list of
        pairs of bounds. See `Space`.
    context : mapping, optional
        The space of the variables whose values the caller passes to ``suggest``, declared like `space`. Default None:
        there is no context.
    candidates : array-like of shape (N, d), DataFrame, mapping of columns, or list of dicts, optional
        A finite set of points, the rows of this array or table. If the columns have names, params are dicts; columns of
        text and of booleans are categories, and None or NaN means that the parameter does not apply to the row. Pass
        either `space` or `candidates`.
    constraints : list of Linear, Mixture, Cardinality or callable, optional
        Known constraints, which are allowed only with `space`: `Linear`, `Mixture` and `Cardinality`, and functions
        that take the dict of params and return True or False, such as ``lambda p: p["a"] * p["b"] <= 1``. Every
        suggestion satisfies all constraints. The functions are called often, in the thread that calls ``suggest``; they
        should be fast and depend only on the params. `RandomSearch` tries at most 10,000 points for a suggestion. If
        `RandomSearch` or `BayesOpt` does not find a point that satisfies the functions, it draws from a pool of points
        that satisfy them. To fill the pool, 10,000 points are tried once and, if all violate the functions, 10,000
        points in which most parameters are at an end of their range. Functions can be pickled only if they are defined
        at the top level of a module. Default None: all points are allowed.
    fidelity : Fidelity, optional
        The range of fidelities, if trials may be cheaper than full evaluations. By default a trial has the highest
        fidelity. Default None: every trial is a full evaluation.
    clock : {"iterations", "seconds"}, default "iterations"
        The unit of times and delays: suggestions started, or seconds.
    direction : {"maximize", "minimize"}, default "maximize"
        Whether large or small values are better.
    seed : int, optional
        From 0 to 2**64 - 1. Default None: a seed is drawn. In both cases, the attribute `seed_` contains the seed. The
        seed and the reports, in their order, determine the suggestions. In a run that only ``timeout`` ends, `BayesOpt`
        also uses the measured durations (``per="auto"`` of `LogEI`), so equal seeds give different trials; pass
        ``acquisition=bl.LogEI(per="trial")`` to repeat such a run.
    time : callable, optional
        A function that returns seconds, used for time stamps and for ``clock="seconds"``. Default None: `time.time`.
    curve : Curve, optional
        The learning curve that each trial reports step by step. Default None: trials do not report steps.
    stopping : ASHA, MedianStopping, ModelStopping, str or None, default "auto"
        The rule that stops trials before the last step, if a curve was declared. A string ("asha", "median" or "model")
        denotes the rule of this name with its defaults. "auto" means "model" for `BayesOpt`, and None for
        `RandomSearch`, which has no model. None: trials are not stopped.
    outcomes : mapping, optional
        Name → goal, if a trial has several values: "minimize", "maximize", `Minimize`, `Maximize`, `AtMost`, `AtLeast`,
        `Between` or `Record`. One outcome is the objective, or two or three outcomes are the objectives of a front; see
        `pareto_`. Of several objectives, the bound on the worse side is the reference of the hypervolume. Default None:
        a trial has one value.

    Raises
    ------
    InvalidSpace
        The space, the candidates or the context cannot be searched.
    InvalidSetting
        Another argument is invalid.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.RandomSearch({"x": (-1.0, 1.0)}, direction="minimize", seed=0)
    >>> for trial in optimizer.suggest(n=100):
    ...     trial.observe(trial.params["x"] ** 2)
    >>> optimizer.best_value_ < 0.01
    True
    """

"""`BelatedSearchCV`: an asynchronous, model-based search over hyperparameters with cross-validation.

A worker's task is a single fit: one candidate on one split. Several workers therefore share the fits of a candidate.
Few candidates are in progress at a time, so the choice of a candidate uses the results of almost all earlier
candidates. If the search has a resource, a worker's task is one candidate; see `sklearn_resource`.
"""

import inspect
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from datetime import timedelta
from functools import partial
from re import fullmatch
from typing import Any

import joblib
import numpy as np
from sklearn import get_config
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.metrics._scorer import _check_multimetric_scoring, _MultimetricScorer
from sklearn.model_selection import _validation, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import indexable
from sklearn.utils.parallel import delayed

from belated._core import InvalidSetting
from belated.integrations.candidates import Candidates, Objective
from belated.integrations.joblib_tasks import Task, completed
from belated.integrations.sklearn_resource import (
    Growth,
    Resource,
    best_complete,
    check_fit_params,
    checked_resource,
    grow,
    reports_of,
    with_values,
)
from belated.integrations.sklearn_spaces import read_spaces, with_optimizers
from belated.optimizers.curve import Curve
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.outcomes import MAX_OBJECTIVES
from belated.run.arguments import count, positive_seconds
from belated.short_repr import short_repr
from belated.space.arguments import checks_arguments, whole_number
from belated.study.study import Study


class BelatedSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search over hyperparameters with cross-validation. A model of the scores so far chooses the next candidate.

    The interface and the attributes are the same as in scikit-learn's `RandomizedSearchCV`. Workers do not wait for
    each other. The next candidate starts as soon as a worker is free, and its choice takes the candidates in progress
    into account.

    Parameters
    ----------
    estimator : estimator
        As for `RandomizedSearchCV`; it may be a pipeline.
    space : mapping or list
        Parameter's name → `Real`, `Integer`, `Ordinal`, `Categorical` or their shorthand, as for `belated.Space` (a
        tuple is a range); a list of choices; an array or a range, whose numbers are treated as ordered if they are
        monotonic; or a frozen distribution of scipy.stats. A parameter with ``when=`` is conditional.

        A list of mappings, or of tuples (mapping, number of candidates), is also accepted. The mappings are searched
        one after the other, each with its own optimizer. If a number is left out, it is `n_iter`.
    n_iter : int, default 50
        The number of candidates to evaluate. The first 4 to 10 candidates are spread over the space. The model chooses
        the later candidates. If the space has fewer points, each point is evaluated once, with a warning.
    optimizer : callable, optional
        Called as ``optimizer(space, seed=seed)``, returns the optimizer or the `Study` that chooses the candidates. The
        callable may be an optimizer's class, or ``functools.partial(bl.BayesOpt, acquisition="ucb")``. Default None:
        `BayesOpt`. If there is a resource, it is called as ``optimizer(space, seed=seed, curve=curve)``, and for a
        front as ``optimizer(space, seed=seed, outcomes=outcomes)``.
    objective : str or list of str, optional
        The metric that the optimizer maximises, if there are several metrics. A list of two or three metrics is
        searched for its front, see `pareto_` of `optimizer_`. Default None: the metric that `refit` names; if `refit`
        is False or a function, all metrics of `scoring`, which must be two or three.
    scoring : str, callable, list, tuple or dict, optional
        As for `RandomizedSearchCV`.
    n_jobs : int, optional
        The number of fits that run at a time. The workers belong to joblib's active backend. -1 means the number of
        CPUs.
    refit : bool, str or callable, default True
        As for `RandomizedSearchCV`; with several metrics, the name of a metric.
    cv : int, splitter or iterable, optional
        As for `RandomizedSearchCV`. The splits are made once, so that all candidates are compared on the same splits.
    verbose : int, default 0
        As for `RandomizedSearchCV`.
    pre_dispatch : int or str, default "n_jobs+1"
        The number of fits that are submitted to the workers at a time: an integer, "n_jobs", "2*n_jobs" or "n_jobs+1".
        One waiting fit keeps the workers busy while results are read. If more fits wait, candidates are chosen with
        fewer results. If there is a resource, this is the number of candidates instead of fits.
    random_state : int, RandomState instance or None, default None
        The source of the optimizer's seed. With an integer and ``n_jobs=1``, the candidates are always the same. With
        several workers, the candidates also depend on the order in which results arrive.
    resource : str, optional
        The quantity that grows from step to step while a candidate is fitted, so that bad candidates can be stopped
        early: the parameter that counts the stages of an estimator with ``warm_start``, such as "n_estimators"; or
        "epochs", the number of calls of ``partial_fit`` with all the training data. For the last step of a pipeline,
        write "model__n_estimators" or "model__epochs". The mean scores of a candidate are its learning curve, and the
        argument `stopping` of the optimizer is the rule: by default `ModelStopping` for `BayesOpt`.
    max_resource : int, optional
        The resource of a candidate that is not stopped. It must be given if `resource` is given.
    min_resource : int, optional
        The resource of the first step, and the amount that each further step adds. Default None: a twentieth of
        `max_resource`, rounded up.
    timeout : float or timedelta, optional
        Seconds after which further candidates are not started. Candidates in progress are finished.
    error_score : "raise" or number, default nan
        As for `RandomizedSearchCV`. If it is nan, a candidate becomes a failed trial if one of its fits failed or its
        score is not finite. If it is a number, this number is the score of a failed fit, and the mean score of the
        candidate is an ordinary value.
    return_train_score : bool, default False
        As for `RandomizedSearchCV`.

    Attributes
    ----------
    optimizer_ : Optimizer or Study, or list of these
        The optimizer that chose the candidates, with one trial for each candidate. Use it for plots, `recommend` and
        `trials_dataframe`. If `space` is a list, a list with the optimizer of each mapping. If there are several
        metrics, the attrs of a trial are the mean scores of the metrics that are not the objective.
    cv_results_ : dict
        As for `RandomizedSearchCV`; candidates are in the order in which they were chosen. If there is a resource, the
        column "n_resources" has the resource of each candidate, at which its scores were computed. Only candidates with
        `max_resource` can be the best candidate.
    best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, refit_time_, multimetric_
        As for `RandomizedSearchCV`.
    classes_, n_features_in_, feature_names_in_
        The attributes of the best estimator.

    Raises
    ------
    InvalidSpace, InvalidSetting
        Raised by `fit` if an argument is invalid.

    Examples
    --------
    >>> import belated as bl
    >>> from belated.integrations.sklearn import BelatedSearchCV
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"C": bl.Real(1e-3, 1e3, log=True), "gamma": bl.Real(1e-4, 1e1, log=True)}
    >>> search = BelatedSearchCV(SVC(), space, n_iter=20, random_state=0).fit(X, y)
    >>> round(float(search.best_score_), 2), len(search.cv_results_["params"])
    (0.98, 20)
    """

    # Checks in versions of scikit-learn before 1.6 read this attribute.
    _required_parameters = ("estimator", "space")

    @checks_arguments
    def __init__(
        self,
        estimator: Any,
        space: Mapping[str, Any] | Sequence[Any],
        *,
        n_iter: int = 50,
        optimizer: Callable[..., Optimizer | Study] | None = None,
        objective: str | Sequence[str] | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "n_jobs+1",
        random_state: Any = None,
        resource: str | None = None,
        max_resource: int | None = None,
        min_resource: int | None = None,
        timeout: float | timedelta | None = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self.space = space
        self.n_iter = n_iter
        self.optimizer = optimizer
        self.objective = objective
        self.random_state = random_state
        self.resource = resource
        self.max_resource = max_resource
        self.min_resource = min_resource
        self.timeout = timeout
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, **params: Any) -> "BelatedSearchCV":
        """Run the search, then fit the best estimator to all the data unless `refit` is False.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            Training data, or a precomputed kernel or distance matrix.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            The target.
        **params
            Arguments for the estimator's `fit`, for the scorer, and for the splitter (such as ``groups``), as in
            `RandomizedSearchCV`.

        Returns
        -------
        BelatedSearchCV
            This search.
        """
        start = time.monotonic()
        if getattr(self, "_skl_callbacks", None):
            raise InvalidSetting("callbacks of scikit-learn are not supported here: leave set_callbacks out")
        n_iter, timeout = count("n_iter", self.n_iter, 1), positive_seconds("timeout", self.timeout)
        spaces = read_spaces(self.space, n_iter)
        given = (self.estimator, self.resource, self.min_resource, self.max_resource)
        resource = checked_resource(*given, [space.space for space, _ in spaces])
        scorers, refit_metric = _scorers_of(self)
        unwrapped = scorers._scorers if isinstance(scorers, _MultimetricScorer) else scorers
        # The names of the metrics; None if there is one unnamed metric, or if names are not known before a fit.
        names = list(unwrapped) if isinstance(unwrapped, dict) else None
        if names is None and self.objective is not None and not callable(self.scoring):
            raise InvalidSetting(f"objective={self.objective!r} is for several metrics: leave it out")
        front = _front_of(self.objective, self.refit, names)
        if front is not None and resource is not None:
            raise InvalidSetting(
                f"resource={resource.name!r} needs one metric, and {front} are objectives: pass one as objective="
            )
        objective: Objective = front
        if front is None and names is not None:
            objective = _objective_of(self.objective, self.refit, names)
        X, y = indexable(X, y)
        fit_params, split_params, score_params = _routed(self, X, params)
        if resource is not None:
            check_fit_params(self.estimator, resource.name, fit_params)
        splits = self._splits(X, y, split_params)
        curve = None if resource is None else Curve(resource.steps)
        searched = with_optimizers(spaces, self.optimizer, self.random_state, curve, front)
        optimizers = [each.optimizer for each in searched]
        self.optimizer_ = optimizers[0] if isinstance(self.space, Mapping) else optimizers
        candidates = Candidates(searched, splits, math.inf if timeout is None else start + timeout)
        if self.verbose > 0:
            total = candidates.n_iter * len(splits)
            print(f"Fitting {len(splits)} folds for each of {candidates.n_iter} candidates, totalling {total} fits")
        arguments = {
            "X": X,
            "y": y,
            "scorer": scorers,
            "fit_params": fit_params,
            **score_params,
            "return_train_score": self.return_train_score,
            "return_n_test_samples": True,
            "return_times": True,
            "return_parameters": False,
            "error_score": self.error_score,
        }
        try:
            if resource is None:
                self._evaluate(candidates, arguments, objective)
            else:
                self._evaluate_curves(candidates, arguments, objective, resource)
        finally:
            candidates.abandon_unfinished()
        fits = candidates.results()
        _validation._warn_or_raise_about_fit_failures(fits, self.error_score)
        if callable(self.scoring):
            # If there are several metrics, the score of a failed fit is a single number and not a dict of metrics.
            _validation._insert_error_scores(fits, self.error_score)
        made, more = [each.values for each in candidates.made], {}
        if resource is not None:
            made = [each.values | resource.as_params(each.n_resources) for each in candidates.made]
            more = {"n_resources": [each.n_resources for each in candidates.made]}
        results = self._format_results(made, len(splits), fits, more)
        self.multimetric_ = isinstance(fits[0]["test_scores"], dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(fits[0]["test_scores"])
            refit_metric = self.refit
        self._choose(results, refit_metric, resource)
        if self.refit:
            self._refit(X, y, fit_params, results, resource)
        self.scorer_ = unwrapped
        self.cv_results_ = results
        self.n_splits_ = len(splits)
        return self

    def _evaluate(self, candidates: Candidates, arguments: Mapping[str, Any], objective: Objective) -> None:
        """Fit candidates on all splits until the search is over; each worker runs one fit at a time."""
        n_iter, splits = candidates.n_iter, candidates.splits
        base_estimator = clone(self.estimator)
        fit_and_score = _configured(_validation._fit_and_score)

        def next_task() -> Task | None:
            fit = candidates.next_fit()
            if fit is None:
                return None
            train, test = splits[fit.split]
            own = {
                "train": train,
                "test": test,
                "parameters": candidates.made[fit.candidate].values,
                "split_progress": (fit.split, len(splits)),
                "candidate_progress": (fit.candidate, n_iter),
                "verbose": self.verbose,
            }
            return _numbered, (fit, fit_and_score, clone(base_estimator)), {**arguments, **own}

        n_in_flight = self._checked_pre_dispatch(n_iter * len(splits))
        with closing(completed(next_task, self.n_jobs, n_in_flight)) as in_order_of_completion:
            for fit, outcome in in_order_of_completion:
                if objective is None and isinstance(outcome["test_scores"], dict):
                    # If scoring is a function, its metrics are unknown before the first fit.
                    objective = _objective_of(self.objective, self.refit, list(outcome["test_scores"]))
                candidates.take(fit, outcome, objective)

    def _evaluate_curves(
        self, candidates: Candidates, arguments: Mapping[str, Any], objective: Objective, resource: Resource
    ) -> None:
        """Fit candidates step by step until the search is over; each worker runs one candidate at a time."""
        base_estimator, splits = clone(self.estimator), candidates.splits
        configured = _configured(grow)
        metrics = (partial(_objective_of, self.objective, self.refit), objective)
        settings = {**arguments, "verbose": 0}

        def next_task() -> Task | None:
            number = candidates.next_candidate()
            if number is None:
                return None
            candidate = candidates.made[number]
            estimators = [with_values(base_estimator, candidate.values) for _ in splits]
            of_candidate = (candidate.trial.number, estimators, splits, resource, reports[candidate.space])
            return _numbered, (number, configured, *of_candidate, *metrics, settings), {}

        n_in_flight = self._checked_pre_dispatch(candidates.n_iter)
        with (
            reports_of(candidates.spaces, self.n_jobs) as reports,
            closing(completed(next_task, self.n_jobs, n_in_flight)) as in_order_of_completion,
        ):
            for number, grown in in_order_of_completion:
                candidates.take_all(number, *grown)
                if self.verbose > 1:
                    params = ", ".join(f"{name}={value}" for name, value in candidates.made[number].values.items())
                    print(f"[CV] END {params}; {resource.name}={grown.n_resources} of {resource.maximum}")

    def __sklearn_clone__(self) -> "BelatedSearchCV":
        cloned: BelatedSearchCV = super().__sklearn_clone__()
        # Copy the whole space at once. If entries were copied one by one, an estimator among the choices and the same
        # estimator in a condition would become different objects.
        cloned.space = deepcopy(self.space)
        return cloned

    def _checked_pre_dispatch(self, n_fits: int) -> int:
        """Return the number of fits that are submitted to the workers at a time."""
        number = whole_number(self.pre_dispatch)
        if self.pre_dispatch == "all":
            number = n_fits
        elif isinstance(self.pre_dispatch, str):
            terms = fullmatch(r"(?:(\d+)\*)?n_jobs(?:\+(\d+))?", self.pre_dispatch.replace(" ", ""))
            if terms is not None:
                number = int(terms[1] or 1) * joblib.effective_n_jobs(self.n_jobs) + int(terms[2] or 0)
        if number is None or number < 1:
            raise InvalidSetting(
                f"pre_dispatch={short_repr(self.pre_dispatch)} is not usable: pass an integer >= 1, 'all', or a string "
                "like 'n_jobs', '2*n_jobs' or 'n_jobs+1'"
            )
        return number

    def _splits(self, X: Any, y: Any, split_params: Mapping[str, Any]) -> list[tuple[Any, Any]]:
        """Return the indices (train, test) of each split."""
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        expected = cv.get_n_splits(X, y, **split_params)
        splits = list(cv.split(X, y, **split_params))
        if not splits or len(splits) != expected:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. "
                f"Expected {expected} splits, got {len(splits)}"
            )
        return splits

    def _choose(self, results: dict[str, Any], refit_metric: Any, resource: Resource | None) -> None:
        """Set the attributes that describe the best candidate, as scikit-learn's searches do."""
        if not self.refit and self.multimetric_:
            return
        self.best_index_ = self._select_best_index(self.refit, refit_metric, results)
        if resource is not None and not callable(self.refit):
            self.best_index_ = best_complete(results, refit_metric, resource)
        if not callable(self.refit):
            self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]
        self.best_params_ = results["params"][self.best_index_]

    def _refit(
        self, X: Any, y: Any, fit_params: Mapping[str, Any], results: dict[str, Any], resource: Resource | None
    ) -> None:
        self.best_estimator_ = with_values(self.estimator, self.best_params_)
        fit = self.best_estimator_.fit
        if resource is not None and resource.counts_epochs:
            fit = Growth(self.best_estimator_, resource)
            fit.target = int(results["n_resources"][self.best_index_])
        data = (X,) if y is None else (X, y)
        start = time.time()
        fit(*data, **fit_params)
        self.refit_time_ = time.time() - start
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _numbered(task: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    return task, function(*args, **kwargs)


def _front_of(objective: Any, refit: Any, names: list[str] | None) -> list[str] | None:
    """Return the metrics of `names` that are objectives of a front; None if the optimizer maximises one metric."""
    if isinstance(objective, str) or (objective is None and (names is None or isinstance(refit, str))):
        return None
    if objective is None:
        return names if names is not None and 2 <= len(names) <= MAX_OBJECTIVES else None
    wanted = list(objective) if isinstance(objective, (list, tuple)) else []
    if names is None or not 2 <= len(set(wanted) & set(names)) == len(wanted) <= MAX_OBJECTIVES:
        known = "scoring as a list of metrics" if names is None else f"two or three of {names}"
        raise InvalidSetting(f"objective={short_repr(objective)} is not usable: pass the name of a metric, or {known}")
    return wanted


def _objective_of(objective: Any, refit: Any, names: list[str]) -> str:
    """Return which metric of `names` the optimizer maximises, given the arguments `objective` and `refit`."""
    chosen = objective if objective is not None else refit
    if isinstance(chosen, str) and chosen in names:
        return chosen
    if objective is None and len(names) == 1:
        return names[0]
    given = f"objective={objective!r}" if objective is not None else f"refit={short_repr(refit)}"
    raise InvalidSetting(f"{given} does not name the metric to search by: pass objective= or refit= as one of {names}")


# Differences between versions of scikit-learn, from 1.3 on.


def _configured(function: Callable[..., Any]) -> Any:
    """Wrap `function` so that each call uses this thread's scikit-learn configuration and warning filters."""
    [wrapped, _, _] = delayed(function)()
    if hasattr(wrapped, "with_config_and_warning_filters"):
        # In versions of Python in which each thread has its own filters, `_get_filters` returns the filters of this
        # thread.
        filters = getattr(warnings, "_get_filters", lambda: warnings.filters)()
        wrapped.with_config_and_warning_filters(get_config(), filters)
    else:
        wrapped.with_config(get_config())
    return wrapped


def _scorers_of(search: BelatedSearchCV) -> tuple[Any, Any]:
    """Return the scorer (or all scorers), and the metric by which the best candidate is chosen."""
    if hasattr(search, "_get_scorers"):
        takes = inspect.signature(search._get_scorers).parameters
        keywords = {"convert_multimetric": True} if "convert_multimetric" in takes else {}
        scorers, refit_metric = search._get_scorers(**keywords)
        return scorers, refit_metric
    if callable(search.scoring):
        return search.scoring, "score"
    if search.scoring is None or isinstance(search.scoring, str):
        return check_scoring(search.estimator, search.scoring), "score"
    scorers = _check_multimetric_scoring(search.estimator, search.scoring)
    search._check_refit_for_multimetric(scorers)
    return scorers, search.refit


def _routed(search: BelatedSearchCV, X: Any, params: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Return the arguments for the estimator's `fit`, for the splitter, and for `_fit_and_score`."""
    if hasattr(search, "_get_routed_params_for_fit"):
        routed = search._get_routed_params_for_fit(_validation._check_method_params(X, params=params))
        return routed.estimator.fit, routed.splitter.split, {"score_params": routed.scorer.score}
    groups = indexable(X, params.get("groups"))[1]
    others = {name: value for name, value in params.items() if name != "groups"}
    return _validation._check_fit_params(X, others), {"groups": groups}, {}

"""The resource of a `BelatedSearchCV`: a candidate grows step by step, and its mean scores are a learning curve.

A worker's task is one candidate. All splits of a candidate grow together, because a step of the curve is the mean score
over the splits.
"""

import inspect
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

import joblib
import numpy as np
from joblib._parallel_backends import LokyBackend, ThreadingBackend
from joblib.parallel import get_active_backend
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.model_selection import _validation
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import unique_labels

from belated._core import InvalidSetting
from belated.integrations.candidates import FitResult, SearchedSpace, mean_score
from belated.run.arguments import count
from belated.run.curves import DirectReports
from belated.run.objective import Reports
from belated.run.report_server import ReportServer
from belated.short_repr import short_repr

# The resource of estimators with `partial_fit`: the number of calls with all the training data.
EPOCHS = "epochs"
# The largest number of steps if `min_resource` is not given.
_STEPS = 20


@dataclass(frozen=True)
class Resource:
    """The resource of a search. Step s of a curve has the resource ``min(s * per_step, maximum)``."""

    name: str
    per_step: int
    maximum: int

    @property
    def steps(self) -> int:
        """The number of steps of a complete curve."""
        return -(-self.maximum // self.per_step)

    def at(self, step: int) -> int:
        """Return the resource at a step, counted from 1."""
        return min(step * self.per_step, self.maximum)

    def as_params(self, amount: int) -> dict[str, int]:
        """Return the parameter of the estimator for an amount of the resource; an empty dict for epochs."""
        return {} if self.counts_epochs else {self.name: amount}

    @property
    def counts_epochs(self) -> bool:
        """Whether the resource is the number of calls of `partial_fit`."""
        return self.name.split("__")[-1] == EPOCHS


def checked_resource(
    estimator: Any, name: Any, min_resource: Any, max_resource: Any, spaces: Iterable[Mapping[str, Any]]
) -> Resource | None:
    """Check the arguments of a search; return its resource, or None if the search does not have a resource."""
    if name is None:
        for argument, given in (("min_resource", min_resource), ("max_resource", max_resource)):
            if given is not None:
                raise InvalidSetting(
                    f"{argument}={short_repr(given)} needs a resource: pass resource=, such as 'n_estimators', too"
                )
        return None
    if not isinstance(name, str):
        raise InvalidSetting(f"resource={short_repr(name)} is not usable: pass the name of a parameter, or 'epochs'")
    growing_model(estimator, name)
    for space in spaces:
        if name in space:
            raise InvalidSetting(f"resource={name!r} is a parameter of the space: leave it out of the space")
    maximum = count("max_resource", max_resource, 1)
    per_step = -(-maximum // _STEPS) if min_resource is None else count("min_resource", min_resource, 1)
    if per_step > maximum:
        raise InvalidSetting(
            f"min_resource={per_step} is above max_resource={maximum}: pass an integer from 1 to max_resource"
        )
    return Resource(name, per_step, maximum)


def check_fit_params(estimator: Any, name: str, fit_params: Mapping[str, Any]) -> None:
    """Refuse arguments for the fit of a pipeline that scikit-learn routes to its steps."""
    if fit_params and isinstance(estimator, Pipeline) and get_config()["enable_metadata_routing"]:
        raise InvalidSetting(
            f"resource={name!r} of a pipeline does not work with metadata routing of {list(fit_params)}: turn "
            "enable_metadata_routing off and pass STEP__NAME to fit, or leave resource out"
        )


def growing_model(estimator: Any, name: str) -> Any:
    """Return the model that has the resource: the estimator, or the last step of a pipeline.

    Raises
    ------
    InvalidSetting
        The model cannot grow by the resource.
    """
    step, _, parameter = name.rpartition("__")
    model, prefix = estimator, ""
    if isinstance(estimator, Pipeline):
        last = estimator.steps[-1][0]
        model, prefix = estimator.steps[-1][1], f"{last}__"
        if step != last:
            raise InvalidSetting(
                f"resource={name!r} does not belong to the last step of the pipeline: pass '{prefix}' and the "
                f"resource of this step, such as '{prefix}n_estimators' or '{prefix}{EPOCHS}'"
            )
        if type(estimator) is not Pipeline:
            raise InvalidSetting(
                f"resource={name!r} does not work with a {type(estimator).__name__}: use Pipeline of scikit-learn, or "
                "leave resource out"
            )
    elif step:
        raise InvalidSetting(
            f"resource={name!r} belongs to an estimator inside {type(estimator).__name__}, which is fitted from the "
            "beginning each time: pass a resource of the estimator itself, or of the last step of a Pipeline"
        )
    reason = _why_not(model, parameter, prefix)
    if reason:
        raise InvalidSetting(f"resource={name!r} does not work with {type(model).__name__}: {reason}")
    return model


def _why_not(model: Any, parameter: str, prefix: str) -> str:
    """Return why a model cannot grow by a resource, and what to do; empty if it can."""
    advice = f"pass resource='{prefix}{EPOCHS}'" if hasattr(model, "partial_fit") else "leave resource out"
    if parameter == EPOCHS:
        return "" if hasattr(model, "partial_fit") else "it has no partial_fit; pass a parameter that counts stages"
    params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    if parameter not in params:
        return f"it has no parameter {parameter!r}; pass a parameter that counts stages, such as 'n_estimators'"
    if "warm_start" not in params:
        return f"it has no warm_start, so each step would fit all stages again, and stopping saves no time; {advice}"
    # With `warm_start`, `max_iter` of boosting is the total number of stages. For other estimators, each call of `fit`
    # runs up to `max_iter` further iterations.
    if parameter == "max_iter" and not hasattr(model, "staged_predict"):
        return f"with warm_start, a further call of its fit runs max_iter further iterations; {advice}"
    return ""


class Growth:
    """Fits an estimator in several calls: each call continues the fit until the resource is `target`.

    The steps of a pipeline before the last one are fitted by the first call only.
    """

    def __init__(self, estimator: Any, resource: Resource) -> None:
        self.target = 0
        self._done = 0
        self._estimator = estimator
        self._model = growing_model(estimator, resource.name)
        self._resource = resource
        self._transformed: Any = None

    def __call__(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        # Restore the estimator's own `fit` if this object has replaced it.
        vars(self._estimator).pop("fit", None)
        if isinstance(self._estimator, Pipeline):
            X, fit_params = self._through_pipeline(X, y, fit_params)
        data = (X,) if y is None else (X, y)
        if not self._resource.counts_epochs:
            parameter = self._resource.name.rpartition("__")[2]
            self._model.set_params(**{parameter: self.target, "warm_start": True}).fit(*data, **fit_params)
        else:
            takes = inspect.signature(self._model.partial_fit).parameters
            if "classes" in takes and is_classifier(self._model):
                fit_params = {"classes": unique_labels(y), **fit_params}
            for _ in range(self.target - self._done):
                self._model.partial_fit(*data, **fit_params)
        self._done = self.target
        return self._estimator

    def _through_pipeline(self, X: Any, y: Any, fit_params: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the input of the pipeline's last step, and the arguments for the fit of this step."""
        pipeline = self._estimator
        prefix = f"{pipeline.steps[-1][0]}__"
        if self._done == 0:
            self._transformed = X
            others = {name: value for name, value in fit_params.items() if not name.startswith(prefix)}
            if len(pipeline.steps) == 1 and others:
                raise ValueError(f"no step of the pipeline takes {', '.join(others)}: write {prefix}NAME for its step")
            if len(pipeline.steps) > 1:
                first_steps = pipeline[:-1]
                self._transformed = first_steps.fit_transform(X, y, **others)
                # If the pipeline has a memory, the fitted steps are copies.
                pipeline.steps[:-1] = first_steps.steps
        own = {name[len(prefix) :]: value for name, value in fit_params.items() if name.startswith(prefix)}
        return self._transformed, own


class Grown(NamedTuple):
    """A candidate after its last step: the result of each split, the resource, and the metric that was reported."""

    results: list[FitResult]
    n_resources: int
    objective: str | None


def grow(
    number: int,
    estimators: Sequence[Any],
    splits: Sequence[tuple[Any, Any]],
    resource: Resource,
    reports: Reports,
    objective_of: Callable[[list[str]], str | None],
    objective: str | None,
    settings: Mapping[str, Any],
) -> Grown:
    """Fit a candidate step by step on all splits, and report each mean score, until it ends, fails or is stopped.

    Parameters
    ----------
    number : int
        The number of the trial.
    estimators : sequence of estimator
        One for each split, with the values of the candidate.
    objective_of : callable
        Returns the metric to report, given the names of all metrics. It is called if the names are known only from the
        first scores.
    settings : mapping
        The data and further arguments for scikit-learn's `_fit_and_score`.
    """
    growths = [Growth(estimator, resource) for estimator in estimators]
    results: list[FitResult] = [{} for _ in splits]
    for step in range(1, resource.steps + 1):
        for i, (train, test) in enumerate(splits):
            before = results[i]
            if before.get("fit_error"):  # its score is the number `error_score`
                continue
            growths[i].target = resource.at(step)
            # `_fit_and_score` calls this attribute, once.
            estimators[i].fit = growths[i]
            now = _validation._fit_and_score(estimators[i], train=train, test=test, parameters=None, **settings)
            for name in ("fit_time", "score_time"):
                now[name] += before.get(name, 0.0)
            if objective is None and isinstance(now["test_scores"], dict):
                objective = objective_of(list(now["test_scores"]))
            results[i] = now
        value = mean_score(results, objective)
        if not isfinite(value) or reports.report(number, step, value, 0):
            break
    return Grown(results, resource.at(step), objective)


def with_values(estimator: Any, values: Mapping[str, Any]) -> Any:
    """Return a clone of an estimator with the values of a candidate."""
    # The values are cloned too, because they may be estimators.
    return clone(estimator).set_params(**clone(dict(values), safe=False))


def best_complete(results: Mapping[str, Any], metric: str, resource: Resource) -> int:
    """Return the index of the best candidate among those with the whole resource."""
    is_complete = (results["n_resources"] == resource.maximum) & np.isfinite(results[f"mean_test_{metric}"])
    if not is_complete.any():
        raise ValueError(
            f"no candidate reached max_resource={resource.maximum} of {resource.name!r}: all candidates failed or were "
            "stopped; see their errors, or use another rule stopping= of the optimizer"
        )
    ranks = np.where(is_complete, results[f"rank_test_{metric}"], len(is_complete) + 1)
    return int(ranks.argmin())


@contextmanager
def reports_of(spaces: Sequence[SearchedSpace], n_jobs: int | None) -> Generator[Sequence[Reports], None, None]:
    """Yield, for each space, an object with which the workers of joblib's active backend report steps.

    Raises
    ------
    InvalidSetting
        The workers of the backend cannot report.
    """
    direct = [DirectReports(each.optimizer) for each in spaces]
    backend = get_active_backend()[0]
    if joblib.effective_n_jobs(n_jobs) == 1 or isinstance(backend, ThreadingBackend):
        yield direct
        return
    if not isinstance(backend, LokyBackend):
        raise InvalidSetting(
            f"resource= does not work with joblib's {type(backend).__name__}, whose workers cannot report steps: use "
            "joblib.parallel_config(backend='loky') or 'threading', or n_jobs=1"
        )
    with ExitStack() as stack:
        servers = [stack.enter_context(closing(ReportServer(each))) for each in direct]
        yield [server.remote for server in servers]

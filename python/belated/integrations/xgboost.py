"""Learning curves of XGBoost: a callback that reports each boosting round and stops the training of stopped trials."""

from typing import Any

from xgboost.callback import TrainingCallback

from belated.integrations.boosting_rounds import RoundReporter


class ReportCallback(RoundReporter, TrainingCallback):  # type: ignore[misc]
    """Report a metric after each boosting round, and end the training when the trial is stopped.

    Pass the callback to `xgboost.train`, `xgboost.cv`, or an estimator such as ``XGBClassifier(callbacks=[…])``. The
    step is the number of rounds of the model. The value is reported as it is, so an optimizer that minimises needs a
    metric such as the log loss, and an optimizer that maximises needs a metric such as the AUC. `xgboost.cv` reports
    the mean over the folds. If the trial is stopped, `train` returns the model so far, and the run ignores its value.

    Parameters
    ----------
    trial : RunningTrial or Trial
        The argument `trial` of the function of a run, or the result of `suggest`. The optimizer needs a curve with
        a step for each round, ``curve=bl.Curve(n_rounds)``.
    metric : str
        The metric and its data as XGBoost prints them: ``"validation-auc"`` is the metric ``auc`` on the data with the
        name ``validation``. Estimators name their data ``validation_0``, ``validation_1``, ….

    Raises
    ------
    InvalidSetting
        An argument has another type. In the training: the metric is not evaluated, or a curve was not declared.
    InvalidValue
        In the training: there are more rounds than steps of the curve.

    Examples
    --------
    >>> import numpy as np
    >>> import xgboost
    >>> import belated as bl
    >>> from belated.integrations.xgboost import ReportCallback
    >>> x = np.linspace(0, 6, 200)[:, None]
    >>> train = xgboost.DMatrix(x[::2], np.sin(x[::2, 0]))
    >>> validation = xgboost.DMatrix(x[1::2], np.sin(x[1::2, 0]))
    >>> def error(params, trial):
    ...     found = {}
    ...     xgboost.train({"eta": params["eta"], "max_depth": 2, "nthread": 1}, train, num_boost_round=20,
    ...                   evals=[(validation, "validation")], evals_result=found, verbose_eval=False,
    ...                   callbacks=[ReportCallback(trial, "validation-rmse")])
    ...     return found["validation"]["rmse"][-1]
    >>> optimizer = bl.RandomSearch({"eta": (0.01, 0.5)}, curve=bl.Curve(20), stopping="asha", direction="minimize",
    ...                             seed=0)
    >>> result = bl.minimize(error, optimizer=optimizer, n_trials=10)
    >>> len(result.best_trial_.curve), any(trial.state == "stopped" for trial in result.trials)
    (20, True)
    """

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Report the round; XGBoost ends the training if the result is True."""
        evaluated = {
            # The entries of xgboost.cv are pairs of a mean and a standard deviation.
            f"{data}-{metric}": values[-1][0] if isinstance(values[-1], tuple) else values[-1]
            for data, metrics in evals_log.items()
            for metric, values in metrics.items()
        }
        n_rounds = model.num_boosted_rounds()
        stops = self._report(n_rounds, evaluated)
        if stops:
            # xgboost.cv reads this attribute after each stop; otherwise only XGBoost's early stopping sets it.
            model.set_attr(best_iteration=str(n_rounds - 1))
        return stops

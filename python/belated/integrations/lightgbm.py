"""Learning curves of LightGBM: a callback that reports each boosting round and stops the training of stopped trials."""

from typing import Any

from lightgbm import EarlyStopException

from belated.integrations.boosting_rounds import RoundReporter
from belated.optimizers.trial import Trial
from belated.run.objective import RunningTrial


class ReportCallback(RoundReporter):
    """Report a metric after each boosting round, and end the training when the trial is stopped.

    Pass the callback to `lightgbm.train`, `lightgbm.cv`, or the method `fit` of an estimator such as `LGBMClassifier`.
    The step is the number of rounds of the model. The value is reported as it is, so an optimizer that minimises needs
    a metric such as the log loss, and an optimizer that maximises needs a metric such as the AUC. `lightgbm.cv` reports
    the mean over the folds. If the trial is stopped, `train` returns the model so far, and the run ignores its value.

    Parameters
    ----------
    trial : RunningTrial or Trial
        The argument `trial` of the function of a run, or the result of `suggest`. The optimizer needs a curve with
        a step for each round, ``curve=bl.Curve(n_rounds)``.
    metric : str
        The name of the data, a hyphen, and the metric: ``"valid_0-auc"`` is the metric ``auc`` on the first data in
        `valid_sets` or `eval_set`, if the data have no other name.

    Raises
    ------
    InvalidSetting
        An argument has another type. In the training: the metric is not evaluated, or a curve was not declared.
    InvalidValue
        In the training: there are more rounds than steps of the curve.

    Examples
    --------
    >>> import lightgbm
    >>> import numpy as np
    >>> import belated as bl
    >>> from belated.integrations.lightgbm import ReportCallback
    >>> x = np.linspace(0, 6, 200)[:, None]
    >>> train = lightgbm.Dataset(x[::2], np.sin(x[::2, 0]), free_raw_data=False)
    >>> validation = lightgbm.Dataset(x[1::2], np.sin(x[1::2, 0]), reference=train, free_raw_data=False)
    >>> def error(params, trial):
    ...     settings = {"learning_rate": params["eta"], "metric": "rmse", "num_threads": 1, "verbosity": -1}
    ...     model = lightgbm.train(settings, train, num_boost_round=20, valid_sets=[validation],
    ...                            callbacks=[ReportCallback(trial, "valid_0-rmse")])
    ...     return model.best_score["valid_0"]["rmse"]
    >>> optimizer = bl.RandomSearch({"eta": (0.01, 0.5)}, curve=bl.Curve(20), stopping="asha", direction="minimize",
    ...                             seed=0)
    >>> result = bl.minimize(error, optimizer=optimizer, n_trials=10)
    >>> len(result.best_trial_.curve), any(trial.state == "stopped" for trial in result.trials)
    (20, True)
    """

    def __init__(self, trial: RunningTrial | Trial, metric: str) -> None:
        super().__init__(trial, metric)
        # LightGBM calls callbacks in the order of this attribute. This callback is called after the record of the round
        # (20), and before early stopping (30), which ends the last round by an exception.
        self.order = 25

    def __call__(self, env: Any) -> None:
        """Report the round; end the training by an exception that LightGBM catches if the trial is stopped."""
        entries = env.evaluation_result_list or []
        evaluated = {f"{entry[0]}-{entry[1]}": entry[2] for entry in entries}
        if self._report(env.iteration + 1, evaluated):
            raise EarlyStopException(env.iteration, entries)

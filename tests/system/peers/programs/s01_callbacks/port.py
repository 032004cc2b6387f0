"""belated: minimize with callbacks that print and stop.

`NoImprovement`, with another rule, replaces `DeltaYStopper`.
"""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_score

import belated as bl

X, y = load_diabetes(return_X_y=True)
space = {
    "max_depth": (1, 5),
    "learning_rate": bl.Real(1e-3, 1e0, log=True),
    "subsample": (0.3, 1.0),
}


def error(params):
    model = GradientBoostingRegressor(n_estimators=30, random_state=0, **params)
    return -cross_val_score(model, X, y, cv=3, scoring="neg_mean_absolute_error").mean()


def show(optimizer, trial):
    print(optimizer.n_trials, trial.value, optimizer.best_value_)


callbacks = [show, bl.NoImprovement(10)]
result = bl.minimize(error, space, n_trials=25, callbacks=callbacks, timeout=30, seed=0)
print("best value:", result.best_value_, result.best_params_)

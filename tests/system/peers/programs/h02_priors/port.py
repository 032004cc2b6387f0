"""belated: bounds in place of priors, and steps on a logarithmic scale.

There are no priors.
"""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_score

import belated as bl

X, y = load_diabetes(return_X_y=True)

space = {
    "n_estimators": bl.Integer(20, 200, log=True, step=20),
    "learning_rate": bl.Real(0.01, 1.0, log=True),
    "max_leaf_nodes": bl.Integer(2, 20, log=True),
    "loss": ["squared_error", "huber", "absolute_error"],
    "subsample": bl.Real(0.4, 1.0, step=0.1),
}


def error(params):
    model = GradientBoostingRegressor(random_state=0, **params)
    return -cross_val_score(model, X, y, cv=3, scoring="neg_mean_absolute_error").mean()


result = bl.minimize(error, space, n_trials=15, seed=0)
print("best value:", result.best_value_)

"""belated: narrow bounds are a constraint of a second optimizer, which has all earlier trials.

For wider bounds, the second optimizer has a wider space.
"""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_score

import belated as bl

X, y = load_diabetes(return_X_y=True)


def score(params):
    model = GradientBoostingRegressor(n_estimators=60, max_depth=2, random_state=0, **params)
    return cross_val_score(model, X, y, cv=3).mean()


space = {"learning_rate": bl.Real(1e-4, 1.0, log=True), "subsample": (0.2, 1.0)}
first = bl.maximize(score, space, n_trials=12, initial=5, seed=1)
best = first.best_params_["learning_rate"]


def near(params):
    return best / 3 <= params["learning_rate"] <= best * 3


second = bl.BayesOpt(space, constraints=[near], seed=2)
second.add(first.trials_dataframe())
bl.maximize(score, optimizer=second, n_trials=8)
print(second.n_trials, "trials, best value:", second.best_value_)

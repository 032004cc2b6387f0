"""belated: a trial has attributes, and a dict has the model of each trial.

Attributes are JSON, so a model is kept elsewhere.
"""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

import belated as bl

X, y = load_diabetes(return_X_y=True)
X_train, X_valid, y_train, y_valid = train_test_split(X, y, random_state=0)
models = {}


def score(params, trial):
    model = HistGradientBoostingRegressor(**params, max_iter=40, random_state=0)
    models[trial.number] = model.fit(X_train, y_train)
    trial.attrs["data"] = "diabetes"
    trial.attrs["train_score"] = model.score(X_train, y_train)
    return model.score(X_valid, y_valid)


space = {"learning_rate": bl.Real(0.01, 0.5, log=True), "max_leaf_nodes": (2, 16)}
result = bl.maximize(score, space, n_trials=20, seed=0)
best = result.best_trial_
print(best.attrs["data"], best.attrs["train_score"])
print("best value:", models[best.number].score(X_valid, y_valid))

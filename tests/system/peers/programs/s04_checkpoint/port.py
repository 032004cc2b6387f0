"""belated: a study is stored after every trial, and a second run continues it."""

from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import belated as bl

X, y = load_diabetes(return_X_y=True)
space = {"n_neighbors": (1, 60), "p": (1.0, 4.0), "weights": ["uniform", "distance"]}


def error(params):
    model = make_pipeline(StandardScaler(), KNeighborsRegressor(**params))
    return -cross_val_score(model, X, y, cv=3).mean()


optimizer = bl.BayesOpt(space, direction="minimize", seed=0)
study = bl.Study("neighbors", "sqlite:///studies.db", optimizer)
bl.minimize(error, optimizer=study, n_trials=12)

study = bl.Study.load("neighbors", "sqlite:///studies.db")
bl.minimize(error, optimizer=study, n_trials=12)
print(study.n_trials, "calls, best value:", study.best_value_, study.best_params_)

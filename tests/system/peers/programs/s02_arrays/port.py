"""belated: suggest and observe in batches, with arrays, and the predictions of the model."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import belated as bl

X, y = load_breast_cancer(return_X_y=True)


def error(params):
    model = make_pipeline(StandardScaler(), SVC(**params))
    return 1 - cross_val_score(model, X, y, cv=3).mean()


space = {"C": bl.Real(1e-3, 1e3, log=True), "gamma": bl.Real(1e-5, 1e1, log=True)}
opt = bl.BayesOpt(space, direction="minimize", initial=6, seed=0)
for _ in range(8):
    for trial in opt.suggest(n=3):
        opt.observe(trial, error(trial.params))
points = np.array([list(trial.params.values()) for trial in opt.trials])
values = np.array([trial.value for trial in opt.trials])
grid = np.column_stack([np.ones(5), np.logspace(-4, 0, 5)])
mean, std = opt.predict(grid)
print(points.shape, values.shape, mean.round(2), std.round(2))
print("best value:", values.min(), points[values.argmin()])

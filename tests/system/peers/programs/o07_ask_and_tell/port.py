"""belated: suggest, observe and fail, in any order."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVR

import belated as bl

X, y = load_diabetes(return_X_y=True)
rng = np.random.default_rng(0)
space = {"C": bl.Real(1e-1, 1e4, log=True), "gamma": bl.Real(1e-3, 1e2, log=True)}
optimizer = bl.BayesOpt(space, seed=0)
running = optimizer.suggest(n=4)
for _ in range(30):
    trial = running.pop(rng.integers(len(running)))
    if trial.params["C"] * trial.params["gamma"] > 1e4:
        optimizer.fail(trial)
    else:
        optimizer.observe(trial, cross_val_score(SVR(**trial.params), X, y, cv=3).mean())
    running.append(optimizer.suggest())
failed = [trial for trial in optimizer.trials if trial.state == "failed"]
print(len(failed), "failed,", len(optimizer.pending), "running")
print("best value:", optimizer.best_value_, optimizer.best_params_)

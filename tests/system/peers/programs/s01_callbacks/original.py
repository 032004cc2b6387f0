"""scikit-optimize: gp_minimize with callbacks that print and stop."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_score
from skopt import gp_minimize
from skopt.callbacks import DeadlineStopper, DeltaYStopper
from skopt.space import Integer, Real
from skopt.utils import use_named_args

X, y = load_diabetes(return_X_y=True)
space = [
    Integer(1, 5, name="max_depth"),
    Real(1e-3, 1e0, prior="log-uniform", name="learning_rate"),
    Real(0.3, 1.0, name="subsample"),
]


@use_named_args(space)
def objective(**params):
    model = GradientBoostingRegressor(n_estimators=30, random_state=0, **params)
    scores = cross_val_score(model, X, y, cv=3, scoring="neg_mean_absolute_error")
    return -np.mean(scores)


def show(res):
    print(len(res.func_vals), res.func_vals[-1], res.fun)


callbacks = [show, DeltaYStopper(0.05, n_best=5), DeadlineStopper(30)]
res = gp_minimize(objective, space, n_calls=25, callback=callbacks, random_state=0)
print("best value:", res.fun, res.x)

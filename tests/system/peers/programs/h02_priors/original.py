"""Hyperopt: rounded logarithmic scales, normal priors, and choices with probabilities."""

import numpy as np
from hyperopt import Trials, fmin, hp, tpe
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_score

X, y = load_diabetes(return_X_y=True)

space = {
    "n_estimators": hp.qloguniform("n_estimators", np.log(20), np.log(200), 20),
    "log_rate": hp.normal("log_rate", -1.0, 0.5),
    "max_leaf_nodes": hp.qlognormal("max_leaf_nodes", np.log(6), 0.4, 1),
    "loss": hp.pchoice("loss", [(0.7, "squared_error"), (0.2, "huber"), (0.1, "absolute_error")]),
    "subsample": hp.quniform("subsample", 0.4, 1.0, 0.1),
}


def error(params):
    model = GradientBoostingRegressor(
        n_estimators=int(params["n_estimators"]),
        learning_rate=10 ** params["log_rate"],
        max_leaf_nodes=max(2, int(params["max_leaf_nodes"])),
        loss=params["loss"],
        subsample=min(params["subsample"], 1.0),
        random_state=0,
    )
    return -cross_val_score(model, X, y, cv=3, scoring="neg_mean_absolute_error").mean()


trials = Trials()
rng = np.random.default_rng(0)
fmin(error, space, tpe.suggest, 15, trials=trials, rstate=rng, show_progressbar=False)
print("best value:", min(trials.losses()))

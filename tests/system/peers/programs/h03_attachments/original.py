"""Hyperopt: each trial keeps its model as an attachment, and the best model is used afterwards."""

import pickle

import numpy as np
from hyperopt import STATUS_OK, Trials, fmin, hp, tpe
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
X, X_valid, y, y_valid = train_test_split(X, y, test_size=0.6, random_state=0)


def train(params):
    model = SVC(**params).fit(X, y)
    return {
        "loss": 1 - model.score(X_valid, y_valid),
        "status": STATUS_OK,
        "n_support": int(model.n_support_.sum()),
        "attachments": {"model": pickle.dumps(model)},
    }


space = {
    "C": hp.loguniform("C", np.log(0.01), np.log(100)),
    "gamma": hp.loguniform("gamma", np.log(1e-5), np.log(1e-1)),
}
trials = Trials()
rng = np.random.default_rng(0)
fmin(train, space, tpe.suggest, 25, trials=trials, rstate=rng, show_progressbar=False)
best = trials.best_trial
model = pickle.loads(trials.trial_attachments(best)["model"])
print(best["result"]["n_support"], "support vectors, test accuracy", model.score(X_test, y_test))
print("best value:", best["result"]["loss"])

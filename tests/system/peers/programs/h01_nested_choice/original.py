"""Hyperopt: a choice of a model, in which the kernel is a choice with further parameters."""

import numpy as np
from hyperopt import fmin, hp, space_eval, tpe
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

X, y = load_wine(return_X_y=True)

rbf = {"name": "rbf", "gamma": hp.loguniform("gamma", np.log(1e-4), np.log(10))}
poly = {"name": "poly", "degree": hp.uniformint("degree", 2, 5)}
C = hp.loguniform("C", np.log(1e-3), np.log(1e3))
svm = {"type": "svm", "C": C, "kernel": hp.choice("kernel", [{"name": "linear"}, rbf, poly])}
tree = {"type": "tree", "max_depth": hp.uniformint("max_depth", 1, 8)}
space = hp.choice("model", [svm, tree])


def error(params):
    if params["type"] == "svm":
        kernel = dict(params["kernel"])
        model = SVC(C=params["C"], kernel=kernel.pop("name"), **kernel)
    else:
        model = DecisionTreeClassifier(max_depth=params["max_depth"], random_state=0)
    return 1 - cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3).mean()


rng = np.random.default_rng(0)
best = fmin(error, space, algo=tpe.suggest, max_evals=30, rstate=rng, show_progressbar=False)
print(space_eval(space, best), "best value:", error(space_eval(space, best)))

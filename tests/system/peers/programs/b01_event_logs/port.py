"""belated: a study stores every step, and a second session continues it.

The file is a database; `belated study export` prints it as lines of JSON.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

import belated as bl

X, y = load_breast_cancer(return_X_y=True)


def accuracy(params):
    forest = RandomForestClassifier(n_estimators=20, random_state=0, **params)
    return cross_val_score(forest, X, y, cv=3).mean()


space = {"max_features": (0.05, 1.0), "max_depth": (2, 12)}

first = bl.Study("forest", "sqlite:///steps.db", bl.BayesOpt(space, initial=4, seed=1))
bl.maximize(accuracy, optimizer=first, n_trials=10)

second = bl.Study.load("forest", "sqlite:///steps.db")
bl.maximize(accuracy, optimizer=second, n_trials=6)
print(second.n_trials, "steps, best value:", second.best_value_)

"""bayesian-optimization 2.0: a log of every step, from which a second session continues."""

from bayes_opt import BayesianOptimization
from bayes_opt.event import Events
from bayes_opt.logger import JSONLogger
from bayes_opt.util import load_logs
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

X, y = load_breast_cancer(return_X_y=True)


def accuracy(max_features, max_depth):
    forest = RandomForestClassifier(
        n_estimators=20, max_features=max_features, max_depth=round(max_depth), random_state=0
    )
    return cross_val_score(forest, X, y, cv=3).mean()


pbounds = {"max_features": (0.05, 1.0), "max_depth": (2, 12)}

first = BayesianOptimization(accuracy, pbounds, random_state=1, verbose=0)
first.subscribe(Events.OPTIMIZATION_STEP, JSONLogger(path="steps.log"))
first.maximize(init_points=4, n_iter=6)

second = BayesianOptimization(accuracy, pbounds, random_state=2, verbose=0)
load_logs(second, logs=["steps.log"])
second.subscribe(Events.OPTIMIZATION_STEP, JSONLogger(path="steps.log", reset=False))
second.maximize(init_points=0, n_iter=6)
print(len(second.res), "steps, best value:", second.max["target"])

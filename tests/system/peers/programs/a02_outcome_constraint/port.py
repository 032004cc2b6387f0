"""belated: accuracy is maximized, trials with too many nodes fail, other metrics are attributes.

The model learns where trials fail, but not from their numbers of nodes or accuracies.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import belated as bl

X, X_test, y, y_test = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)


def evaluate(parameters):
    forest = RandomForestClassifier(random_state=0, **parameters).fit(X, y)
    return {
        "accuracy": forest.score(X_test, y_test),
        "nodes": sum(tree.tree_.node_count for tree in forest.estimators_),
        "training_accuracy": forest.score(X, y),
    }


space = {"n_estimators": (3, 60), "max_depth": (1, 10), "max_features": (0.05, 1.0)}
opt = bl.BayesOpt(space, seed=0)
for _ in range(15):
    trial = opt.suggest()
    measured = evaluate(trial.params)
    if measured["nodes"] <= 500:
        opt.observe(trial, measured["accuracy"], attrs=measured)
    else:
        opt.fail(trial, error="too many nodes", attrs=measured)
table = opt.trials_dataframe()
print(table["attrs_training_accuracy"].describe())
print((table["state"] == "observed").sum(), "of 15 allowed, best value:", opt.best_value_)

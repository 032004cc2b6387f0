"""belated: accuracy is maximized under a bound on the number of nodes; one outcome is recorded."""

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
outcomes = {"accuracy": "maximize", "nodes": bl.AtMost(500), "training_accuracy": bl.Record()}
result = bl.maximize(evaluate, space, outcomes=outcomes, n_trials=15, seed=0)
values = [trial.values for trial in result.trials]
allowed = [each for each in values if each["nodes"] <= 500]
print(sum(each["training_accuracy"] for each in values) / 15)
print(len(allowed), "of 15 allowed, best value:", result.best_value_)

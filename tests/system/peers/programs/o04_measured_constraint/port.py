"""belated: a bound on a measured quantity, the number of nodes of a forest."""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import belated as bl

X, y = load_digits(return_X_y=True)
X_train, X_valid, y_train, y_valid = train_test_split(X, y, random_state=0)


def measure(params):
    forest = RandomForestClassifier(**params, random_state=0).fit(X_train, y_train)
    n_nodes = sum(tree.tree_.node_count for tree in forest.estimators_)
    return {"accuracy": forest.score(X_valid, y_valid), "nodes": n_nodes}


space = {"n_estimators": (5, 50), "max_depth": (2, 16), "min_samples_leaf": (1, 10)}
outcomes = {"accuracy": "maximize", "nodes": bl.AtMost(3000)}
result = bl.maximize(measure, space, outcomes=outcomes, n_trials=30, seed=0)
feasible = [trial for trial in result.trials if trial.values["nodes"] <= 3000]
print(len(feasible), "of 30 feasible, best value:", result.best_value_, result.best_params_)

"""belated: a trial fails if its forest has too many nodes.

The model learns where trials fail, but not from their numbers of nodes.
"""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import belated as bl

X, y = load_digits(return_X_y=True)
X_train, X_valid, y_train, y_valid = train_test_split(X, y, random_state=0)


def accuracy(params):
    forest = RandomForestClassifier(**params, random_state=0).fit(X_train, y_train)
    n_nodes = sum(tree.tree_.node_count for tree in forest.estimators_)
    if n_nodes > 3000:
        raise ValueError(f"{n_nodes} nodes")
    return forest.score(X_valid, y_valid)


space = {"n_estimators": (5, 50), "max_depth": (2, 16), "min_samples_leaf": (1, 10)}
result = bl.maximize(accuracy, space, n_trials=30, seed=0, catch=ValueError)
feasible = [trial for trial in result.trials if trial.state == "observed"]
print(len(feasible), "of 30 feasible, best value:", result.best_value_, result.best_params_)

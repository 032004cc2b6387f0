"""Optuna: a constraint on a measured quantity, the number of nodes of a forest."""

import optuna
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

X, y = load_digits(return_X_y=True)
X_train, X_valid, y_train, y_valid = train_test_split(X, y, random_state=0)


def objective(trial):
    forest = RandomForestClassifier(
        n_estimators=trial.suggest_int("n_estimators", 5, 50),
        max_depth=trial.suggest_int("max_depth", 2, 16),
        min_samples_leaf=trial.suggest_int("min_samples_leaf", 1, 10),
        random_state=0,
    ).fit(X_train, y_train)
    n_nodes = sum(tree.tree_.node_count for tree in forest.estimators_)
    trial.set_user_attr("constraints", [n_nodes - 3000])
    return forest.score(X_valid, y_valid)


sampler = optuna.samplers.TPESampler(
    seed=0, constraints_func=lambda trial: trial.user_attrs["constraints"]
)
study = optuna.create_study(direction="maximize", sampler=sampler)
study.optimize(objective, n_trials=30)
feasible = [trial for trial in study.trials if trial.user_attrs["constraints"][0] <= 0]
best = max(feasible, key=lambda trial: trial.value)
print(len(feasible), "of 30 feasible, best value:", best.value, best.params)

"""Optuna: two objectives, accuracy and number of leaves, and their Pareto front."""

import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

X, y = load_breast_cancer(return_X_y=True)


def objective(trial):
    tree = DecisionTreeClassifier(
        max_depth=trial.suggest_int("max_depth", 1, 10),
        ccp_alpha=trial.suggest_float("ccp_alpha", 1e-5, 1e-1, log=True),
        random_state=0,
    )
    accuracy = cross_val_score(tree, X, y, cv=3).mean()
    return accuracy, tree.fit(X, y).get_n_leaves()


sampler = optuna.samplers.NSGAIISampler(population_size=10, seed=0)
study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
study.optimize(objective, n_trials=40)
for trial in study.best_trials:
    print(trial.number, trial.values, trial.params)
print("best value:", max(trial.values[0] for trial in study.best_trials))

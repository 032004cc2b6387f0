"""Optuna: attributes of trials and of the study, and a callback that keeps the best model."""

import optuna
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

X, y = load_diabetes(return_X_y=True)
X_train, X_valid, y_train, y_valid = train_test_split(X, y, random_state=0)


def objective(trial):
    model = HistGradientBoostingRegressor(
        learning_rate=trial.suggest_float("learning_rate", 0.01, 0.5, log=True),
        max_leaf_nodes=trial.suggest_int("max_leaf_nodes", 2, 16),
        max_iter=40,
        random_state=0,
    ).fit(X_train, y_train)
    trial.set_user_attr("train_score", model.score(X_train, y_train))
    trial.set_user_attr("model", model)
    return model.score(X_valid, y_valid)


def keep_best(study, trial):
    if study.best_trial.number == trial.number:
        study.set_user_attr("best_model", trial.user_attrs["model"])


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.set_user_attr("data", "diabetes")
study.optimize(objective, n_trials=20, callbacks=[keep_best])
print(study.user_attrs["data"], study.best_trial.user_attrs["train_score"])
print("best value:", study.user_attrs["best_model"].score(X_valid, y_valid))

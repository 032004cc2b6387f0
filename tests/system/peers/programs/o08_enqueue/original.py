"""Optuna: known settings are tried first; the parameters that they leave open are sampled."""

import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import cross_val_score

X, y = load_breast_cancer(return_X_y=True)


def objective(trial):
    model = GradientBoostingClassifier(
        learning_rate=trial.suggest_float("learning_rate", 1e-3, 1.0, log=True),
        max_depth=trial.suggest_int("max_depth", 1, 6),
        subsample=trial.suggest_float("subsample", 0.3, 1.0),
        n_estimators=15,
        random_state=0,
    )
    return cross_val_score(model, X, y, cv=3).mean()


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.enqueue_trial({"learning_rate": 0.1, "max_depth": 3, "subsample": 1.0})
study.enqueue_trial({"learning_rate": 0.5})
study.enqueue_trial({"max_depth": 1}, user_attrs={"memo": "stumps"})
study.optimize(objective, n_trials=20)
print("first:", [trial.params for trial in study.trials[:3]], study.trials[2].user_attrs)
print("best value:", study.best_value, study.best_params)

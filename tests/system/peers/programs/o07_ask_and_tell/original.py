"""Optuna: ask and tell; results arrive out of order, and some evaluations fail."""

import numpy as np
import optuna
from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVR

X, y = load_diabetes(return_X_y=True)
rng = np.random.default_rng(0)
distributions = {
    "C": optuna.distributions.FloatDistribution(1e-1, 1e4, log=True),
    "gamma": optuna.distributions.FloatDistribution(1e-3, 1e2, log=True),
}
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
running = [study.ask(distributions) for _ in range(4)]
for _ in range(30):
    trial = running.pop(rng.integers(len(running)))
    if trial.params["C"] * trial.params["gamma"] > 1e4:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    else:
        study.tell(trial, cross_val_score(SVR(**trial.params), X, y, cv=3).mean())
    running.append(study.ask(distributions))
failed = study.get_trials(states=[optuna.trial.TrialState.FAIL])
print(len(failed), "failed,", len(running), "running")
print("best value:", study.best_value, study.best_params)

"""Optuna: threads, a time limit, caught errors, and a callback that stops the study."""

import optuna
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import NuSVC

X, y = load_wine(return_X_y=True)


def objective(trial):
    nu = trial.suggest_float("nu", 0.05, 1.0)
    gamma = trial.suggest_float("gamma", 1e-4, 1e1, log=True)
    model = make_pipeline(StandardScaler(), NuSVC(nu=nu, gamma=gamma))
    return cross_val_score(model, X, y, cv=3, error_score="raise").mean()


def stop_when_good(study, trial):
    if trial.value is not None and trial.value > 0.985:
        study.stop()


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(
    objective, n_trials=40, n_jobs=2, timeout=20, catch=(ValueError,), callbacks=[stop_when_good]
)
failed = study.get_trials(states=[optuna.trial.TrialState.FAIL])
print(len(failed), "failed, best value:", study.best_value, study.best_params)

"""Optuna: the layers of a network are nested in the choice of a model."""

import optuna
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

X, y = load_wine(return_X_y=True)


def objective(trial):
    if trial.suggest_categorical("model", ["svc", "network"]) == "svc":
        C = trial.suggest_float("C", 1e-3, 1e3, log=True)
        gamma = trial.suggest_float("gamma", 1e-4, 1e1, log=True)
        model = SVC(C=C, gamma=gamma)
    else:
        alpha = trial.suggest_float("alpha", 1e-6, 1e-1, log=True)
        n_layers = trial.suggest_int("n_layers", 1, 3)
        layers = [trial.suggest_int(f"units_{i}", 4, 32, log=True) for i in range(n_layers)]
        model = MLPClassifier(layers, alpha=alpha, solver="lbfgs", max_iter=40, random_state=0)
    return cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3).mean()


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(objective, n_trials=20)
print("best value:", study.best_value, study.best_params)

"""Optuna: a grid, then CMA-ES, and the importances of the parameters as a dict."""

import optuna
from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

X, y = load_diabetes(return_X_y=True)


def objective(trial):
    C = trial.suggest_float("C", 1e0, 1e4, log=True)
    gamma = trial.suggest_float("gamma", 1e-4, 1e0, log=True)
    epsilon = trial.suggest_float("epsilon", 0.1, 10.0, log=True)
    model = make_pipeline(StandardScaler(), SVR(C=C, gamma=gamma, epsilon=epsilon))
    return cross_val_score(model, X, y, cv=3).mean()


grid = {"C": [1.0, 100.0, 10000.0], "gamma": [1e-4, 1e-2, 1.0], "epsilon": [1.0]}
by_grid = optuna.create_study(direction="maximize", sampler=optuna.samplers.GridSampler(grid))
by_grid.optimize(objective)
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.CmaEsSampler(seed=0))
study.optimize(objective, n_trials=40)
print(len(by_grid.trials), "points:", by_grid.best_value)
for name, importance in optuna.importance.get_param_importances(study).items():
    print(f"{name}: {importance:.2f}")
print("best value:", study.best_value, study.best_params)

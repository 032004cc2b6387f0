"""Optuna: studies in a database are resumed, listed, copied and deleted."""

import optuna
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNet
from sklearn.model_selection import cross_val_score

X, y = load_diabetes(return_X_y=True)
storage = "sqlite:///studies.db"


def objective(trial):
    alpha = trial.suggest_float("alpha", 1e-4, 1e1, log=True)
    l1_ratio = trial.suggest_float("l1_ratio", 0.0, 1.0)
    return cross_val_score(ElasticNet(alpha=alpha, l1_ratio=l1_ratio), X, y, cv=5).mean()


for _ in range(2):
    study = optuna.create_study(
        study_name="net", storage=storage, direction="maximize", load_if_exists=True
    )
    study.sampler = optuna.samplers.TPESampler(seed=len(study.trials))
    study.optimize(objective, n_trials=10)

optuna.copy_study(
    from_study_name="net", from_storage=storage, to_storage=storage, to_study_name="copy"
)
optuna.load_study(study_name="copy", storage=storage).optimize(objective, n_trials=5)
print(optuna.get_all_study_names(storage))
optuna.delete_study(study_name="net", storage=storage)
for summary in optuna.get_all_study_summaries(storage):
    print(summary.study_name, summary.n_trials, "best value:", summary.best_trial.value)

"""Optuna: a classifier is pruned while it is trained, epoch by epoch."""

import optuna
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

X, y = load_digits(return_X_y=True)
X_train, X_valid, y_train, y_valid = train_test_split(X / 16, y, random_state=0)


def objective(trial):
    alpha = trial.suggest_float("alpha", 1e-6, 1.0, log=True)
    loss = trial.suggest_categorical("loss", ["hinge", "log_loss", "modified_huber"])
    model = SGDClassifier(loss=loss, alpha=alpha, random_state=0)
    for epoch in range(20):
        model.partial_fit(X_train, y_train, classes=range(10))
        accuracy = model.score(X_valid, y_valid)
        trial.report(accuracy, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return accuracy


sampler = optuna.samplers.TPESampler(seed=0)
pruner = optuna.pruners.MedianPruner(n_startup_trials=5)
study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
study.optimize(objective, n_trials=25)
pruned = study.get_trials(states=[optuna.trial.TrialState.PRUNED])
print(len(pruned), "trials were pruned, best value:", study.best_value, study.best_params)

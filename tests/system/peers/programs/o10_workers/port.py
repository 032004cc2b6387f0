"""belated: threads, a time limit, caught errors, and a callback that stops the run."""

from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import NuSVC

import belated as bl

X, y = load_wine(return_X_y=True)


def accuracy(params):
    model = make_pipeline(StandardScaler(), NuSVC(**params))
    return cross_val_score(model, X, y, cv=3, error_score="raise").mean()


space = {"nu": (0.05, 1.0), "gamma": bl.Real(1e-4, 1e1, log=True)}
stop = [bl.ValueReached(0.985)]
result = bl.maximize(
    accuracy, space, n_trials=40, n_workers=2, timeout=20, catch=ValueError, callbacks=stop, seed=0
)
failed = [trial for trial in result.trials if trial.state == "failed"]
print(len(failed), "failed, best value:", result.best_value_, result.best_params_)

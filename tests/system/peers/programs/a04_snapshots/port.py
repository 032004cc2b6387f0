"""belated: booleans and ordered choices, and a study that another process continues."""

from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import belated as bl

X, y = load_wine(return_X_y=True)


def accuracy(width, learning_rate, nesterovs_momentum):
    network = MLPClassifier(
        (width,),
        solver="sgd",
        learning_rate_init=learning_rate,
        nesterovs_momentum=nesterovs_momentum,
        max_iter=20,
        random_state=0,
    )
    return cross_val_score(make_pipeline(StandardScaler(), network), X, y, cv=3).mean()


space = {
    "width": bl.Ordinal([4, 8, 16, 32]),
    "learning_rate": bl.Real(1e-4, 0.5, log=True),
    "nesterovs_momentum": [True, False],
}
study = bl.Study("networks", "sqlite:///networks.db", bl.BayesOpt(space, seed=0))
bl.maximize(lambda params: accuracy(**params), optimizer=study, n_trials=6)

later = bl.Study.load("networks", "sqlite:///networks.db")
bl.maximize(lambda params: accuracy(**params), optimizer=later, n_trials=6)
print(later.n_trials, "trials, best value:", later.best_value_)

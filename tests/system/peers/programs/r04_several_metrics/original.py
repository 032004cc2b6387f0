"""Ray Tune: several metrics are reported, and results are chosen by each of them."""

import time

from ray import tune
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split


def train(config):
    X, X_test, y, y_test = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    forest = RandomForestClassifier(random_state=0, **config).fit(X, y)
    start = time.perf_counter()
    p = forest.predict_proba(X_test)
    return {
        "log_loss": log_loss(y_test, p),
        "accuracy": accuracy_score(y_test, p.argmax(axis=1)),
        "seconds": time.perf_counter() - start,
    }


space = {"n_estimators": tune.randint(10, 100), "max_features": tune.uniform(0.05, 1.0)}
config = tune.TuneConfig(
    metric="log_loss", mode="min", num_samples=10, max_concurrent_trials=2, reuse_actors=True
)
results = tune.Tuner(train, param_space=space, tune_config=config).fit()
table = results.get_dataframe()
print(table[["config/n_estimators", "log_loss", "accuracy", "seconds"]].sort_values("log_loss"))
print("most accurate:", results.get_best_result("accuracy", "max").config)
print("best value:", results.get_best_result().metrics["log_loss"])

"""Ray Tune: ASHA stops networks by their accuracy after each epoch."""

import numpy as np
from ray import tune
from ray.tune.schedulers import ASHAScheduler
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split


def train(config):
    X, X_valid, y, y_valid = train_test_split(*load_digits(return_X_y=True), random_state=0)
    model = SGDClassifier(learning_rate="constant", random_state=0, **config)
    for _ in range(27):
        model.partial_fit(X / 16, y, classes=np.arange(10))
        tune.report({"accuracy": model.score(X_valid / 16, y_valid)})


tuner = tune.Tuner(
    train,
    param_space={"eta0": tune.loguniform(1e-5, 1.0), "alpha": tune.loguniform(1e-7, 1e-1)},
    tune_config=tune.TuneConfig(
        metric="accuracy",
        mode="max",
        num_samples=20,
        max_concurrent_trials=2,
        reuse_actors=True,
        scheduler=ASHAScheduler(max_t=27, grace_period=1, reduction_factor=3),
    ),
)
results = tuner.fit()
epochs = sum(result.metrics["training_iteration"] for result in results)
best = results.get_best_result()
print(epochs, "epochs, best value:", best.metrics["accuracy"])

"""Ray Tune: a nested config, a logarithmic scale with steps, and a grid over the solvers."""

from ray import tune
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler


def train(config):
    X, y = load_breast_cancer(return_X_y=True)
    features = PolynomialFeatures(**config["features"], include_bias=False)
    model = LogisticRegression(**config["model"], random_state=0)
    pipeline = make_pipeline(StandardScaler(), features, StandardScaler(), model)
    return {"accuracy": cross_val_score(pipeline, X[:, :6], y, cv=3).mean()}


space = {
    "features": {"degree": tune.randint(1, 4), "interaction_only": tune.choice([True, False])},
    "model": {
        "C": tune.qloguniform(0.01, 10, 0.01),
        "max_iter": tune.qlograndint(10, 200, 10),
        "solver": tune.grid_search(["lbfgs", "liblinear"]),
    },
}
config = tune.TuneConfig(
    metric="accuracy", mode="max", num_samples=5, max_concurrent_trials=2, reuse_actors=True
)
results = tune.Tuner(train, param_space=space, tune_config=config).fit()
best = results.get_best_result()
print(best.config, "best value:", best.metrics["accuracy"])

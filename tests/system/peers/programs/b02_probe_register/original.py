"""bayesian-optimization: earlier measurements are registered, known settings are probed first."""

import numpy as np
from bayes_opt import BayesianOptimization


def yield_of(temperature, time, ratio):
    return 90 * np.exp(
        -(((temperature - 132) / 45) ** 2) - ((time - 6.5) / 4) ** 2 - ((ratio - 1.7) / 0.9) ** 2
    )


optimizer = BayesianOptimization(
    f=yield_of,
    pbounds={"temperature": (60, 200), "time": (0.5, 12), "ratio": (0.5, 3)},
    random_state=3,
    verbose=0,
)
measured = [
    ({"temperature": 80, "time": 2.0, "ratio": 1.0}, 8.3),
    ({"temperature": 180, "time": 4.0, "ratio": 2.5}, 9.4),
    ({"temperature": 100, "time": 10.0, "ratio": 1.5}, 24.8),
]
for params, target in measured:
    optimizer.register(params=params, target=target)
optimizer.probe(params={"temperature": 120, "time": 6.0, "ratio": 1.0}, lazy=True)
optimizer.probe(params={"temperature": 150, "time": 8.0, "ratio": 2.0}, lazy=True)
optimizer.maximize(init_points=0, n_iter=15)
print("best value:", optimizer.max["target"], optimizer.max["params"])

"""belated: earlier measurements are added, known settings are enqueued."""

import numpy as np

import belated as bl


def yield_of(temperature, time, ratio):
    return 90 * np.exp(
        -(((temperature - 132) / 45) ** 2) - ((time - 6.5) / 4) ** 2 - ((ratio - 1.7) / 0.9) ** 2
    )


space = {"temperature": (60.0, 200.0), "time": (0.5, 12.0), "ratio": (0.5, 3.0)}
optimizer = bl.BayesOpt(space, initial=5, seed=3)
measured = [
    ({"temperature": 80, "time": 2.0, "ratio": 1.0}, 8.3),
    ({"temperature": 180, "time": 4.0, "ratio": 2.5}, 9.4),
    ({"temperature": 100, "time": 10.0, "ratio": 1.5}, 24.8),
]
for params, value in measured:
    optimizer.add(params, value)
optimizer.enqueue({"temperature": 120, "time": 6.0, "ratio": 1.0})
optimizer.enqueue({"temperature": 150, "time": 8.0, "ratio": 2.0})
result = bl.maximize(lambda params: yield_of(**params), optimizer=optimizer, n_trials=17)
print("best value:", result.best_value_, result.best_params_)

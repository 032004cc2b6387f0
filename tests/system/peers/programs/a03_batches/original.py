"""Ax: batches of four, the centre point first, then Sobol points, then a model."""

import math

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig


def hartmann(x):
    rows = [(1.0, 3, 10, 30, 0.37, 0.12, 0.27), (1.2, 0.1, 10, 35, 0.47, 0.44, 0.75)]
    rows += [(3.0, 3, 10, 30, 0.11, 0.87, 0.55), (3.2, 0.1, 10, 35, 0.04, 0.57, 0.88)]
    return -sum(
        r[0] * math.exp(-sum(a * (xi - p) ** 2 for a, xi, p in zip(r[1:4], x, r[4:], strict=True)))
        for r in rows
    )


names = ["x1", "x2", "x3"]
client = Client(random_seed=0)
client.configure_experiment(
    parameters=[RangeParameterConfig(name=n, bounds=(0, 1), parameter_type="float") for n in names]
)
client.configure_optimization(objective="-hartmann")
client.configure_generation_strategy(
    method="fast", initialization_budget=8, initialize_with_center=True
)
best = math.inf
for _ in range(6):
    for index, parameters in client.get_next_trials(max_trials=4).items():
        value = hartmann([parameters[name] for name in names])
        client.complete_trial(trial_index=index, raw_data={"hartmann": value})
        best = min(best, value)
    print(len(client.summarize()), "trials, best value:", best)

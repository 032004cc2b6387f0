"""belated: batches of four, the centre point first, then a space-filling design, then a model."""

import math

import belated as bl


def hartmann(x):
    rows = [(1.0, 3, 10, 30, 0.37, 0.12, 0.27), (1.2, 0.1, 10, 35, 0.47, 0.44, 0.75)]
    rows += [(3.0, 3, 10, 30, 0.11, 0.87, 0.55), (3.2, 0.1, 10, 35, 0.04, 0.57, 0.88)]
    return -sum(
        r[0] * math.exp(-sum(a * (xi - p) ** 2 for a, xi, p in zip(r[1:4], x, r[4:], strict=True)))
        for r in rows
    )


names = ["x1", "x2", "x3"]
space = dict.fromkeys(names, (0.0, 1.0))
opt = bl.BayesOpt(space, direction="minimize", initial=8, seed=0)
opt.enqueue(dict.fromkeys(names, 0.5))
for _ in range(6):
    for trial in opt.suggest(n=4):
        opt.observe(trial, hartmann([trial.params[name] for name in names]))
    print(opt.n_trials, "trials, best value:", opt.best_value_)

"""scikit-optimize: a checkpoint after every call, from which a second run continues."""

from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skopt import gp_minimize, load
from skopt.callbacks import CheckpointSaver
from skopt.space import Categorical, Integer, Real
from skopt.utils import use_named_args

X, y = load_diabetes(return_X_y=True)
space = [
    Integer(1, 60, name="n_neighbors"),
    Real(1.0, 4.0, name="p"),
    Categorical(["uniform", "distance"], name="weights"),
]


@use_named_args(space)
def objective(**params):
    model = make_pipeline(StandardScaler(), KNeighborsRegressor(**params))
    return -cross_val_score(model, X, y, cv=3).mean()


saver = CheckpointSaver("checkpoint.pkl", store_objective=False)
gp_minimize(objective, space, n_calls=12, callback=[saver], random_state=0)

old = load("checkpoint.pkl")
x0, y0 = old.x_iters, old.func_vals
res = gp_minimize(
    objective, space, n_calls=12, n_initial_points=0, x0=x0, y0=y0, callback=[saver], random_state=1
)
print(len(res.func_vals), "calls, best value:", res.fun, res.x)

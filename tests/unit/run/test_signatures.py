"""Public functions have complete signatures for users and type checkers."""

import inspect
import pydoc

import pytest

import belated as bl
from belated.run.arguments import PASSED_ON

PROGRAM = """
import belated as bl


def f(params: dict[str, float]) -> float:
    return -((params["x"] - 0.3) ** 2)


def measured(params: dict[str, float], trial: bl.RunningTrial) -> dict[str, object]:
    trial.attrs["number"] = trial.number
    return {"value": params["x"], "std": 0.1}


def show(optimizer: bl.Optimizer | bl.Study, trial: bl.Trial) -> None:
    print(optimizer.best_value_, trial.value)


space = {"x": (0.0, 1.0), "n": bl.Integer(1, 8)}
result: bl.Result = bl.maximize(f, space, n_trials=3, seed=0, acquisition="ucb", initial=2, curve=None)
bl.minimize(measured, space=space, n_trials=3, callbacks=[show, bl.NoImprovement(3), bl.ValueReached(1)], seed=None)
bl.maximize(f, optimizer=result.optimizer, n_trials_total=3, timeout=1.5, n_workers=2, catch=(ValueError, KeyError))
bl.maximize(lambda x: x[0], candidates=[[0.0], [1.0]], n_trials=2, acquisition=bl.UCB(), stopping="asha")
optimizer = bl.BayesOpt(space, acquisition=bl.UCB(2.0), pending="ignore", window=20, seed=0)
trial: bl.Trial = optimizer.suggest()
trial.observe(f(trial.params))
bl.RandomSearch(candidates=[[0.0], [1.0]], direction="minimize")
bl.maximize(f, space, n_trails=3)  # error: "n_trails"
bl.maximize(f, space, n_trials="3")  # error: "n_trials"
bl.maximize(f, space, n_trials=3, random_state=0)  # error: "random_state"
bl.minimize(f, space, n_trials=3, acquisition="ubc")  # error: "acquisition"
bl.minimize(f, space, n_trials=3, direction="minimize")  # error: "direction"
bl.minimize(f, space, n_trials=3, window=3.0)  # error: "window"
bl.minimize(f, space, 3)  # error: positional
bl.minimize(space=space, n_trials=3)  # error: "f"
bl.BayesOpt(space, windw=20)  # error: "windw"
bl.BayesOpt(space, seed="0")  # error: "seed"
bl.RandomSearch(space, window=20)  # error: "window"
bl.UCB(bta=2.0)  # error: "bta"
bl.GP(kernel="matern")  # error: "kernel"
bl.NoImprovement("3")  # error: "NoImprovement"
optimizer.ask()  # error: "ask"
result.best_params  # error: "best_params"
trial.suggest_float("x", 0, 1)  # error: "suggest_float"
"""


def test_type_checkers_see_the_arguments(tmp_path, mypy):
    (tmp_path / "program.py").write_text(PROGRAM)
    lines, found = mypy(tmp_path), {}
    for line in lines:
        if line.startswith("program.py:") and ": error: " in line:
            _, number, message = line.split(":", 2)
            found.setdefault(int(number), []).append(message)
    expected = {
        number: line.partition("# error: ")[2]
        for number, line in enumerate(PROGRAM.splitlines(), 1)
        if "# error: " in line
    }
    assert set(found) == set(expected), lines
    for number, part in expected.items():
        assert any(part in message for message in found[number]), found[number]


def test_runs_pass_arguments_of_bayes_opt_on():
    assert set(PASSED_ON) < set(inspect.signature(bl.BayesOpt).parameters)


@pytest.mark.parametrize("run", [bl.maximize, bl.minimize])
def test_signatures_show_the_arguments_of_runs(run):
    text = str(inspect.signature(run))
    assert text.startswith("(f, space=None, *, candidates=None, optimizer=None, n_trials=None, n_trials_total=None, ")
    assert "acquisition='log_ei'" in text and "seed=None" in text and "**" not in text
    assert text.removesuffix(")") in pydoc.plain(pydoc.render_doc(run))


def callables():
    for name in bl.__all__:
        thing = getattr(bl, name)
        # Other tests cover the annotations of the space's classes.
        if callable(thing) and not thing.__module__.startswith(("belated.space", "belated._core")):
            yield name, thing
            if inspect.isclass(thing):
                for method, function in inspect.getmembers(thing, inspect.isfunction):
                    if not method.startswith("_") and function.__module__.startswith("belated."):
                        yield f"{name}.{method}", function


CALLABLES = dict(callables())


@pytest.mark.parametrize("name", CALLABLES)
def test_annotations_are_short(name):
    try:
        signature = inspect.signature(CALLABLES[name])
    except ValueError:
        return  # an exception
    annotations = [each.annotation for each in signature.parameters.values()] + [signature.return_annotation]
    texts = [inspect.formatannotation(each) for each in annotations if each is not inspect.Signature.empty]
    assert not [text for text in texts if len(text) > 100 or "numpy." in text]

"""Small programs of other packages and their ports to belated run, and most ports do not have more lines."""

import ast
import math
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

import belated as bl
from tests.system.peers.count import PROGRAMS, lines_of, n_lines, programs

ALL = programs()
# Packages that an original needs without an import.
NEEDED = {"O9": ["cmaes"]}
SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}

program = pytest.mark.parametrize("program", ALL, ids=lambda program: program.folder.name)


def is_installed(name):
    """Return whether a module exists, without importing it; a package around it is imported."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def skip_if_missing(path, more=()):
    """Skip the test if a package that a program imports is not installed."""
    names = {*more}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    missing = sorted(name for name in names if not is_installed(name))
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def best_value(path, folder):
    """Run a program in a folder; return the best value that it prints last."""
    settings = os.environ | {"MPLBACKEND": "Agg", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(path)]
    run = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return float(re.findall(r"best value: (\S+)", run.stdout)[-1])


@program
def test_port_runs(program, tmp_path):
    skip_if_missing(program.port)
    assert math.isfinite(best_value(program.port, tmp_path))


@program
def test_original_runs(program, tmp_path):
    skip_if_missing(program.original, NEEDED.get(program.id, []))
    if program.id.startswith("R") and not os.environ.get("BELATED_FULL"):
        pytest.skip("a program of Ray Tune takes half a minute: set BELATED_FULL=1")
    assert math.isfinite(best_value(program.original, tmp_path))


# Counts.


@program
def test_ports_have_more_lines_only_where_their_note_has_the_reason(program):
    original, port = lines_of(program)
    assert (port > original) == program.may_be_longer


@program
def test_programs_are_small_and_have_titles(program):
    original, _ = lines_of(program)
    assert 10 <= original <= 45
    assert re.fullmatch(r"[^\n]+: [^\n]+\.", program.title)


def test_ids_are_unique():
    assert len({program.id for program in ALL}) == len(ALL) >= 15


def test_programs_are_formatted_by_the_same_rules():
    ruff = shutil.which("ruff", path=os.path.dirname(sys.executable)) or shutil.which("ruff")
    if ruff is None:
        pytest.skip("not installed: ruff")
    run = subprocess.run([ruff, "format", "--check", "."], cwd=PROGRAMS, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_lines_of_code_are_counted():
    code = """
# A comment.
import math  # counts

class A:
    "A docstring."

    def f(self):
        '''A docstring
        of two lines.'''
        text = '''one
two'''
        return (
            math.pi
        )
"""
    assert n_lines(f'"""A module.\n\nIts text.\n"""\n{code}') == 8


# Features that belated refuses: the message names what to use instead.


def with_constraint(params, trial):
    trial.set_constraint("nodes", 1.0)
    return 1.0


def with_model(params, trial):
    trial.attrs["model"] = object()
    return 1.0


REFUSED = {
    "O3 two values": (
        lambda: bl.maximize(lambda params: (0.9, 12.0), SPACE, n_trials=3),
        "for several objectives, declare each",
    ),
    "O3 directions": (
        lambda: bl.maximize(lambda params: 0.9, SPACE, n_trials=3, directions=["maximize", "minimize"]),
        "declare the goals by outcomes=",
    ),
    "O4 function": (
        lambda: bl.maximize(lambda params: 0.9, SPACE, n_trials=3, constraints_func=lambda trial: [1.0]),
        "if a measured value is not allowed, raise an exception in f",
    ),
    "O4 method": (lambda: bl.maximize(with_constraint, SPACE, n_trials=3), "raise an exception if a measured value"),
    "O9 class": (lambda: bl.CmaEs(SPACE), "use bl.BayesOpt, or the package cma"),
    "O9 name": (lambda: bl.algorithm("CMA-ES", SPACE), "use bl.BayesOpt, or the package cma"),
    "S5 function": (lambda: bl.forest_minimize(max, SPACE), "bl.BayesOpt fits a Gaussian process"),
    "S5 surrogate": (lambda: bl.BayesOpt(SPACE, surrogate="RF"), "bl.RandomSearch and bl.TreeSearch have no model"),
    "S5 name": (lambda: bl.algorithm("forest", SPACE), "bl.BayesOpt fits a Gaussian process"),
    "S5 x0": (
        lambda: bl.minimize(lambda params: 0.9, SPACE, n_trials=3, x0=[[0.1, 0.2]]),
        r"call its enqueue\(params\)",
    ),
}


@pytest.mark.filterwarnings("ignore:trial 0 failed:belated.BelatedWarning")
@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_name_what_to_use_instead(call, message):
    with pytest.raises((bl.BelatedError, AttributeError), match=message):
        call()


def test_a_model_among_the_attributes_becomes_text_with_a_warning():
    with pytest.warns(bl.BelatedWarning, match="is not JSON data"):
        result = bl.maximize(with_model, SPACE, n_trials=3)
    assert [trial.state for trial in result.trials] == ["observed"] * 3

"""Every example in the documentation of the installed package, and in the README, runs."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import belated
from tests.system.docs.pages import DOCS, blocks

_MODULES = ["belated"] + [module.name for module in pkgutil.walk_packages(belated.__path__, "belated.")]
_README = Path(__file__).parents[3] / "README.md"
_STARTS_RAY = "belated.integrations.ray.tasks"
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", [name for name in _MODULES if not name.endswith(".__main__")])
def test_examples_of_module(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "belated").split(".")[0] == "belated":
            raise
        pytest.skip(f"{name} needs {error.name}, which is not installed")
    if name == _STARTS_RAY:
        # A process can start Ray only once, and another test may already have started Ray.
        code = f"import doctest, {name} as m; raise SystemExit(doctest.testmod(m, optionflags={_FLAGS}).failed)"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stdout + run.stderr
        return
    assert doctest.testmod(module, optionflags=_FLAGS).failed == 0


def test_examples_of_readme(capsys):
    if not _README.exists():
        pytest.skip("the installed package comes without its README")
    text = _README.read_text(encoding="utf-8")
    # The pattern finds a block of Python and the output that the README shows below it.
    blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    for code, output in blocks:
        exec(compile(code, str(_README), "exec"), {})
        assert capsys.readouterr().out == output


def test_readme_has_at_most_900_words():
    if not _README.exists():
        pytest.skip("the installed package comes without its README")
    assert len(_README.read_text(encoding="utf-8").split()) <= 900


def test_every_public_name_is_documented():
    undocumented = [name for name in belated.__all__ if not getattr(belated, name).__doc__]
    assert undocumented == []


def test_algorithms_page_names_the_papers():
    page = DOCS / "algorithms.md"
    if not page.exists():
        pytest.skip("the installed package comes without its pages")
    rows = re.findall(r"^\| `(.+)` \|.*\|.*\| (\w+).*? (\d{4}).*\|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for name, _, _ in rows} == set(belated.algorithms())
    for name, author, year in rows:
        assert author in belated.algorithms()[name] and year in belated.algorithms()[name]


def test_algorithms_of_theorems_have_the_settings_of_their_theorems():
    """The cells of the table "For a guarantee" are executed, after the block above the table."""
    page = DOCS / "which.md"
    if not page.exists():
        pytest.skip("the installed package comes without its pages")
    names: dict = {}
    (block, *_) = [block for block in blocks(page) if block.heading == "For a guarantee"]
    exec(compile(block.source, str(page), "exec"), names)
    calls = re.findall(r"^\| .* \| `(bl\..*)` \| .* \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    made = [eval(call, names) for call in calls]
    assert len(made) == 11
    for optimizer in made:
        # Nothing that a theorem needs is estimated from values.
        settings = optimizer._settings()
        given = settings.get("bound") or settings.get("surrogate") or optimizer
        assert None not in [
            getattr(given, name, 0) for name in ("lengthscale", "signal_std", "noise_std", "range", "b")
        ]
        assert None not in [settings.get(name, 0) for name in ("nu", "rho")]
        for _ in range(12):
            trial = optimizer.suggest()
            trial.observe(0.5)

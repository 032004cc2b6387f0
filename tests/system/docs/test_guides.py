"""The guides in docs/: their examples run, and their links are valid."""

import logging
import re
import subprocess
import sys
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, DocTest, DocTestParser, DocTestRunner

import pytest

import belated
from belated import plotting
from tests.system.docs.pages import COMPARISONS, DOCS, GUIDES, blocks, is_program, is_session

pytestmark = pytest.mark.skipif(not GUIDES, reason="the installed package comes without its pages")

# README.md, CONTRIBUTING.md and so on
PROJECT_PAGES = sorted(DOCS.parent.glob("*.md"))
# The libraries that a page requires.
NEEDED = {
    "boosting": ["xgboost", "lightgbm"],
    "callbacks": ["mlflow", "tensorboardX"],
    "dask": ["distributed"],
    "excel": ["openpyxl"],
    "optuna": ["optuna"],
    "processes": ["loky"],
    "ray": ["ray.tune"],
}

WITH_CODE = [page for page in GUIDES if blocks(page)]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_guide_runs(page, tmp_path, monkeypatch):
    # The page docs/runs.md sets the level of the package's logger.
    monkeypatch.setattr(logging.getLogger("belated"), "level", logging.NOTSET)
    for library in NEEDED.get(page.stem, []):
        pytest.importorskip(library)
    pytest.importorskip("sklearn")
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    if any(map(is_program, blocks(page))):
        run_as_script(page, tmp_path)
        return
    namespace = {"__name__": "__main__"}
    for block in blocks(page):
        if is_session(block):
            examples = DocTestParser().get_examples(block.code)
            session = DocTest(examples, namespace, str(block), str(page), block.line, block.code)
            said = []
            runner = DocTestRunner(optionflags=ELLIPSIS | NORMALIZE_WHITESPACE)
            failed = runner.run(session, out=said.append, clear_globs=False).failed
            namespace = session.globs
            assert failed == 0, "".join(said)
        else:
            exec(compile(block.source, page, "exec"), namespace)


def run_as_script(page, folder):
    """Run the blocks of a page as one script, which workers in other processes can import."""
    script = folder / "script.py"
    script.write_text("".join(block.code for block in blocks(page)), encoding="utf-8")
    run = subprocess.run([sys.executable, str(script)], cwd=folder, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("page", [*PROJECT_PAGES, *GUIDES, *COMPARISONS], ids=lambda page: page.stem)
def test_links_to_other_files_are_valid(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`", "", text)
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_plot_is_on_the_page_of_plots():
    text = (DOCS / "plots.md").read_text(encoding="utf-8")
    plots = [name for name in plotting.__all__ if name.startswith("plot_")]
    assert [name for name in plots if f"`{name}`" not in text] == ["plot_curves"]


def test_the_page_of_guides_links_to_every_page():
    links = set(re.findall(r"\]\(([^)#]+\.md)", (DOCS / "guides.md").read_text(encoding="utf-8")))
    assert {page.name for page in DOCS.glob("*.md")} - {"index.md", "guides.md"} <= links


def test_the_page_of_fifteen_names_uses_each_of_its_names():
    page = DOCS / "fifteen_names.md"
    rows = re.findall(r"^\| (`bl\..*?) \|", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    names = re.findall(r"`bl\.(\w+)`", " ".join(rows))
    assert len(names) == len(set(names)) == 15 and set(names) <= set(belated.__all__)
    programs = "".join(block.code for block in blocks(page))
    assert set(names) == set(re.findall(r"\bbl\.(\w+)", programs))

"""Every block of the gallery page runs."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "plots.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the installed package comes without its pages")
def test_the_gallery_runs(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    plots = [name for name in vars(names["bl"].plotting)["__all__"] if name.startswith("plot_")]
    assert [name for name in plots if f"`{name}`" not in text] == ["plot_curves"]
    assert (tmp_path / "predictions.png").stat().st_size > 0
    pyplot.close("all")

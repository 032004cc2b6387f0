"""A server keeps studies open, and closes some of them if too many are open."""

import asyncio
import sqlite3
import threading
from contextlib import closing

import pytest

import belated as bl

pytest.importorskip("anyio")

from belated.serve import studies  # noqa: E402
from belated.store import open_store  # noqa: E402


def test_a_study_with_a_running_call_is_not_closed(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    names = list("abcdef")
    for name in names:
        bl.Study(name, url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    monkeypatch.setattr(studies, "MAX_OPEN", 2)
    begun, end = threading.Event(), threading.Event()

    def slow(study):
        begun.set()
        assert end.wait(30)
        return study

    async def go():
        made = studies.OpenStudies(open_store(url))
        going = asyncio.create_task(made.call("a", slow))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        for name in names[1:]:
            await made.call(name, bl.Study.suggest)
            assert "a" in made._open and len(made._open) <= 2
        waiting = asyncio.create_task(made.call("a", lambda study: study))
        end.set()
        assert await going is await waiting
        for name in names[1:]:
            await made.call(name, bl.Study.suggest)
        assert list(made._open) == ["e", "f"]
        with pytest.raises(bl.BelatedError, match="there is no study"):
            await made.call("none", lambda study: study)
        assert list(made._open) == ["e", "f"]

    asyncio.run(go())


def test_a_name_that_is_not_a_text_is_an_error_of_the_store(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    for name in "ab":
        bl.Study(name, url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("UPDATE studies SET name = x'00ff' WHERE name = 'a'")
        connection.commit()

    async def go():
        made = studies.OpenStudies(open_store(url))
        with pytest.raises(bl.errors.StoreError, match="damaged"):
            await made.names()
        # Other studies can still be used.
        assert (await made.call("b", bl.Study.suggest)).number == 0

    asyncio.run(go())

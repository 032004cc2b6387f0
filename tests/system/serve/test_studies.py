"""A server keeps studies open, and closes some of them if too many are open."""

import asyncio
import sqlite3
import threading
from contextlib import closing

import pytest

import belated as bl
from belated.errors import StoreError

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


@pytest.mark.parametrize("is_created_again", [False, True])
def test_a_study_that_is_deleted_during_a_request_is_404_or_409(tmp_path, is_created_again):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    new = lambda: bl.Study("a", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))  # noqa: E731
    new().suggest()

    def delete():
        bl.Study.delete("a", url)
        if is_created_again:
            new()

    def observe(study):
        delete()
        study.observe(0, 1.0)

    async def go():
        made = studies.OpenStudies(open_store(url))
        expected = studies.OtherStudy if is_created_again else studies.UnknownStudy
        for work in (observe, bl.Study.suggest):
            await made.call("a", bl.Study.sync)
            if work is not observe:
                delete()  # between two requests
            with pytest.raises(expected, match="was deleted and created again|there is no study 'a'"):
                await made.call("a", work)
            if not is_created_again:
                new().suggest()
        assert await made.call("a", lambda study: study.suggest().number) in (0, 1)

    asyncio.run(go())


def test_a_study_that_is_deleted_while_it_is_opened_is_404(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    bl.Study("a", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    load = studies.ServedStudy.load

    def late(name, store, **arguments):
        bl.Study.delete(name, url)
        return load(name, store, **arguments)

    monkeypatch.setattr(studies.ServedStudy, "load", late)
    with pytest.raises(studies.UnknownStudy):
        asyncio.run(studies.OpenStudies(open_store(url)).call("a", bl.Study.sync))


def test_a_store_that_is_gone_is_not_called_a_deleted_study(tmp_path):
    file = tmp_path / "a.db"
    bl.Study("a", f"sqlite:///{file}", bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))

    async def go():
        made = studies.OpenStudies(open_store(f"sqlite:///{file}"))
        await made.call("a", bl.Study.sync)
        file.unlink()
        with pytest.raises(StoreError):
            await made.call("a", bl.Study.sync)

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

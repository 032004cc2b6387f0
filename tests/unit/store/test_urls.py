"""belated parses URLs with passwords as PostgreSQL does, and shows them without the password."""

import re
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated import store
from belated.store.urls import shown, split_passwords


@pytest.mark.parametrize(
    ("location", "without", "secrets"),
    [
        ("", "", {}),
        ("host/db", "host/db", {}),
        ("me@host/db", "me@host/db", {}),
        ("me:pw@h1:1,[::1]:2/db?a=b", "me@h1:1,[::1]:2/db?a=b", {"password": "pw"}),
        ("me:@host", "me@host", {"password": ""}),
        ("me:p%40%3A%2F@/db", "me@/db", {"password": "p@:/"}),
        ("/db?host=%2Ftmp&password=a%26b&x=1", "/db?host=%2Ftmp&x=1", {"password": "a&b"}),
        ("/db?password=a", "/db", {"password": "a"}),
        ("h/db?p%61ssword=a&sslpassword=b&user=c", "h/db?user=c", {"password": "a", "sslpassword": "b"}),
    ],
)
def test_passwords_are_removed_from_urls(location, without, secrets):
    assert split_passwords(location) == (without, secrets)
    assert split_passwords(without) == (without, {})


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@given(user=TEXT, password=TEXT, database=TEXT, named=st.booleans())
def test_urls_are_read_as_libpq_reads_them(user, password, database, named):
    conninfo = pytest.importorskip("psycopg.conninfo")
    parts = [quote(text, safe="") for text in (user, password, database)]
    whole = f"{parts[0]}@host/{parts[2]}?password={parts[1]}" if named else f"{parts[0]}:{parts[1]}@host/{parts[2]}"
    without, secrets = split_passwords(whole)
    expected = conninfo.conninfo_to_dict(f"postgresql://{whole}")
    found = conninfo.conninfo_to_dict(f"postgresql://{without}")
    # libpq ignores an empty password unless the URL gives it as `?password=`.
    assert found | {name: text for name, text in secrets.items() if text or named} == expected
    assert unquote(without) == f"{user}@host/{database}"


@pytest.mark.parametrize("location", ["me:s3cr3t@t@host/db", "me:s3cr/3t@host", "me:s3:cr3t@host/db", "m[e:s3cr3t@h/x"])
def test_an_ambiguous_url_is_refused_and_not_shown(location):
    with pytest.raises(bl.errors.InvalidSetting, match="percent-encoded") as caught:
        store.open_store(f"postgresql://{location}")
    assert "s3" not in str(caught.value) and "3t" not in str(caught.value)


def test_a_tilde_is_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for url in ("sqlite:///~/s.db", Path("~/s.db")):
        assert store.open_store(url).path == str(tmp_path / "s.db")


@pytest.mark.parametrize(
    "given",
    [
        *("mysql://me:s3cr3t@host/db", "postgres://me:s3cr3t@host/db", "postgresql:/me:s3cr3t@host/db"),
        *(
            "me:s3cr3t@host/db",
            "host=h password=s3cr3t",
            "host=h password = 's3cr3t it is' user=x",
            "x://h?password=s3cr3t",
        ),
        "mysql://me:s3cr3t/@host/s3cr3t@host/db",
    ],
)
def test_unknown_urls_are_refused_without_their_password(given):
    with pytest.raises(bl.errors.InvalidSetting, match=r"^store=.* is not usable: pass a URL ") as caught:
        store.open_store(given)
    assert "s3cr3t" not in str(caught.value) and "it is" not in str(caught.value) and "***" in shown(given)


def test_a_url_of_unknown_settings_is_refused():
    pytest.importorskip("psycopg")
    with pytest.raises(
        bl.errors.InvalidSetting, match=r"^store='postgresql://h/db\?a=b' is not a URL of PostgreSQL: .*\"a\""
    ):
        store.open_store("postgresql://h/db?a=b&password=x")


def test_without_psycopg_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(bl.errors.StoreError, match=re.escape("pip install 'belated[postgres]'")):
        store.open_store("postgresql://h/db")

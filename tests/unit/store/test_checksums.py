"""Every change of a record or a header raises an error that names the record or header."""

import json

import pytest

import belated as bl
from belated.store import checksums as form

STUDY = 7
RECORD = form.with_checksum(STUDY, 3, "suggest:0:k", 2.5, '{"a":1}')
DEFINITION = {"problem": {}, "strategy": {"kind": "none"}, "stopping": None, "seed": 0}
WRONG = [
    {"more": 1},
    {"problem": []},
    {"strategy": "none"},
    {"seed": None},
    {"seed": True},
    {"attrs": {}},
    {"revision": 1},
    {"attrs": [], "revision": 1},
    {"attrs": {}, "revision": "1"},
]
HEADER = form.header(STUDY, "s", DEFINITION, 1.5)


def forged(stored, **changes):
    """Return a record or header with the right checksum for its present content."""
    stored = stored._replace(**changes)
    parts = stored[:-1]
    checksum = form._checksum(STUDY, *parts) if isinstance(stored, form.Record) else form._digest(*parts)
    return stored._replace(checksum=checksum)


def test_written_records_are_intact():
    assert form.is_intact(STUDY, RECORD) and forged(RECORD) == RECORD and forged(HEADER) == HEADER
    assert form.verified("s", STUDY, 3, [RECORD]) == [RECORD]
    assert form.verified("s", STUDY, 0, []) == []
    assert form.read_header(HEADER) == DEFINITION
    assert RECORD.version == HEADER.version == form.VERSION and json.loads(HEADER.definition) == DEFINITION


@pytest.mark.parametrize(
    "change",
    [
        {"seq": 4},
        {"key": None},
        {"key": ""},
        {"key": "suggest:0:l"},
        {"at": 2.5000000000000004},
        {"body": '{"a":2}'},
        {"body": '{"a":1}\n'},
        {"body": "\ud800"},
        {"checksum": b""},
        {"checksum": None},
    ],
)
def test_a_changed_record_is_not_intact(change):
    assert not form.is_intact(STUDY, RECORD._replace(**change))
    assert not form.is_intact(STUDY + 1, RECORD)
    with pytest.raises(bl.errors.StoreError, match="event 3 of study 's' is damaged or missing: restore a copy"):
        form.verified("s", STUDY, 3, [RECORD._replace(**change)])


def test_a_missing_key_differs_from_an_empty_key():
    assert not form.is_intact(STUDY, forged(RECORD, key="")._replace(key=None))
    assert form.is_intact(STUDY, forged(RECORD, key="")) and form.is_intact(STUDY, forged(RECORD, key=None))


def test_text_that_is_not_unicode_has_a_checksum_too():
    assert form.is_intact(STUDY, forged(RECORD, body='"\ud800"', key="\ud800"))


@pytest.mark.parametrize(
    "change",
    [
        {"seq": "3"},
        {"seq": 3.0},
        {"seq": True},
        {"version": str(form.VERSION)},
        {"version": float(form.VERSION)},
        {"key": 3},
        {"key": ["k"]},
        {"at": 2},
        {"at": "2.5"},
        {"body": b"{}"},
        {"body": None},
        {"body": 1},
    ],
)
def test_a_record_of_other_types_is_not_intact_although_its_checksum_fits(change):
    assert not form.is_intact(STUDY, forged(RECORD, **change))


def test_intact_events_at_the_wrong_place_are_refused():
    first, second = forged(RECORD, seq=0), forged(RECORD, seq=1)
    assert form.verified("s", STUDY, 0, [first, second]) == [first, second]
    for start, records, number in [(0, [second, first], 0), (0, [first, first], 1), (1, [first], 1), (0, [second], 0)]:
        with pytest.raises(bl.errors.StoreError, match=f"^event {number} of study 's' is damaged or missing"):
            form.verified("s", STUDY, start, records)


@pytest.mark.parametrize(("step", "age"), [(1, "newer"), (-1, "older")])
def test_another_format_is_refused_by_its_number(step, age):
    version = form.VERSION + step
    match = rf"{age} belated .*format {version}, this one reads {form.VERSION}\)"
    with pytest.raises(bl.errors.StoreError, match="^event 3 of study 's' .*" + match):
        form.verified("s", STUDY, 3, [forged(RECORD, version=version)])
    with pytest.raises(bl.errors.StoreError, match="^study 's' .*" + match):
        form.read_header(forged(HEADER, version=version))


def test_only_a_newer_format_may_have_other_checksums():
    newer, older = {"version": form.VERSION + 1}, {"version": form.VERSION - 1}
    with pytest.raises(bl.errors.StoreError, match="newer"):
        form.verified("s", STUDY, 3, [RECORD._replace(**newer)])
    with pytest.raises(bl.errors.StoreError, match="newer"):
        form.read_header(HEADER._replace(**newer))
    with pytest.raises(bl.errors.StoreError, match="damaged"):
        form.verified("s", STUDY, 3, [RECORD._replace(**older)])
    with pytest.raises(bl.errors.StoreError, match="damaged"):
        form.read_header(HEADER._replace(**older))


def test_a_definition_with_nan_is_not_written():
    with pytest.raises(ValueError):
        form.header(STUDY, "s", DEFINITION | {"problem": {"x": float("nan")}}, 1.5)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "7"}, "its checksum does not fit"),
        ({"id": True}, "its checksum does not fit"),
        ({"name": 3}, "its checksum does not fit"),
        ({"definition": None}, "its checksum does not fit"),
        ({"definition": DEFINITION}, "its checksum does not fit"),
        ({"at": 1}, "its checksum does not fit"),
        ({"version": "one"}, "its checksum does not fit"),
        ({"version": float(form.VERSION)}, "its checksum does not fit"),
        ({"definition": "[]"}, "it is not a definition"),
        ({"definition": "3"}, "it is not a definition"),
        ({"definition": json.dumps([*DEFINITION])}, "it is not a definition"),
        ({"definition": '{"problem":{},"strategy":{"kind":"none"},"seed":0}'}, "it is not a definition"),
        *[({"definition": json.dumps(DEFINITION | changed)}, "it is not a definition") for changed in WRONG],
        ({"definition": '{"problem":{"x":NaN}}'}, "NaN is not a number"),
        ({"definition": '{"problem":{"x":-Infinity}}'}, "-Infinity is not a number"),
        ({"definition": "nonsense"}, "Expecting value"),
        ({"definition": "[" * 100_000}, "recursion"),
    ],
)
def test_malformed_definitions_are_refused_although_their_checksum_fits(change, problem):
    stored = forged(HEADER, **change)
    with pytest.raises(
        bl.errors.StoreError, match=f"the definition of study .* is damaged .*{problem}.*: restore a copy"
    ):
        form.read_header(stored)


@pytest.mark.parametrize(
    "change", [{"id": 8}, {"name": "t"}, {"definition": "{}"}, {"at": 1.25}, {"checksum": b""}, {"checksum": None}]
)
def test_a_changed_header_is_refused(change):
    with pytest.raises(bl.errors.StoreError, match="checksum does not fit"):
        form.read_header(HEADER._replace(**change))

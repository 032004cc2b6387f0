"""The fault programs in campaigns/, run with small numbers of faults.

The tests do not check times, because times depend on the machine.
"""

import importlib
import shutil
import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[3] / "campaigns"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills, limits and traces as Linux has them")


@pytest.fixture
def program(monkeypatch):
    """A function that imports a fault program under the name that the program's workers use."""
    monkeypatch.syspath_prepend(str(FAULTS))
    return importlib.import_module


def clean(figures):
    """Check that the results of a fault program do not contain failures, and return the results."""
    harness = importlib.import_module("harness")
    assert harness.failures_in(figures) == 0, figures
    return figures


def test_killed_writers_lose_no_acknowledged_call(program):
    figures = clean(program("kill").run(kills=6, workers=4, kills_per_study=3, longest=3.0))
    assert figures["acknowledged"] > 0 and figures["kills"] >= 6


def test_killed_writers_lose_no_part_of_a_trial(program):
    figures = clean(program("partial_reports").run(kills=6, workers=4, kills_per_study=3, longest=3.0))
    assert figures["acknowledged"] > 0 and figures["kills"] >= 6


def test_crowds_without_the_key_do_not_keep_workers_from_reporting(program):
    reason = program("service").missing()
    if reason is not None:
        pytest.skip(reason)
    figures = program("strangers").run(connections=0, workers=20, silent=0)
    # The times depend on the machine.
    failures = [each for each in figures["first_failures"] if "answered after" not in each]
    assert not failures and figures["reports"]["workers"]["reported"] == 20, figures


def test_silent_clients_keep_nobody_from_working(program):
    reason = program("service").missing() or (None if shutil.which("openssl") else "openssl is not installed")
    if reason is not None:
        pytest.skip(reason)
    figures = program("strangers").run(connections=0, workers=0, silent=100, secured=1)
    # The times depend on the machine.
    failures = [each for each in figures["first_failures"] if "answered after" not in each]
    assert not failures and figures["silent"]["answers"] > 0 and figures["silent"]["most"]["files"] > 60, figures


def test_random_settings_over_http_need_little_time(program):
    reason = program("service").missing()
    if reason is not None:
        pytest.skip(reason)
    figures = program("fuzzed_settings").run(requests=150, every=60, seed=3)
    # The times depend on the machine.
    failures = [each for each in figures["first_failures"] if "processor time" not in each and "SIGTERM" not in each]
    assert not failures and figures["requests"] >= 150 and figures["ends"] > 0, figures


@pytest.fixture
def postgresql(program):
    """Skip the test if the machine cannot start a server."""
    reason = program("server").missing()
    if reason is not None:
        pytest.skip(reason)


def test_killed_writers_lose_no_acknowledged_call_in_postgresql(program, postgresql):
    figures = clean(program("kill").run(kills=4, workers=4, kills_per_study=4, longest=3.0, store="postgresql"))
    assert figures["acknowledged"] > 0 and figures["kills"] >= 4


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_jobs_that_create_one_store_at_once_share_one_study(program, store, request):
    if store == "postgresql":
        request.getfixturevalue("postgresql")
    figures = clean(program("creations").run(rounds=3, jobs=20, store=store))
    assert figures["rounds"] == 3 and figures["creations"] == 60


def test_a_stopped_database_loses_and_repeats_no_call(program, postgresql):
    figures = clean(program("stops").run(stops=3, workers=3))
    assert figures["stops"] == 3 and figures["acknowledged"] == figures["events"] > 0


def test_a_killed_service_loses_and_repeats_no_call(program):
    reason = program("service").missing()
    if reason is not None:
        pytest.skip(reason)
    figures = clean(program("serve").run(requests=0, kills=3, clients=4, calls=200))
    assert figures["stops"] == 3 and figures["events"] >= 800


def test_values_on_pages_of_a_killed_service_are_stored_once_under_the_right_name(program):
    for reason in (program("service").missing(), program("chromium").missing()):
        if reason is not None:
            pytest.skip(reason)
    figures = clean(program("serve").run(requests=0, kills=5, clients=2, pages=2))
    assert figures["kills"] == 5 and figures["values_of_pages"] >= 10 and figures["values_of_programs"] > 0


@pytest.mark.parametrize(
    ("user", "number", "outcome", "value"),
    [
        ("anna", 0, "yield", 0.5),
        ("ben", 0, "yield", 0.5),
        ("anna", 1, "yield", 0.5),
        ("anna", 0, "purity", 0.5),
        ("anna", 0, "yield", 0.25),
        ("anna", 0, "yield", 0.75),
    ],
)
def test_values_that_are_lost_doubled_or_at_the_wrong_place_are_noticed(
    program, tmp_path, user, number, outcome, value
):
    persons, harness = program("persons"), program("harness")
    study = persons.study(tmp_path / "store.db")
    journal, failures = persons.Journal(), harness.Failures()
    journal.started = [trial.number for trial in study.suggest(n=3)]
    study.as_user("anna").observe(0, {"yield": 0.5})
    study.as_user("anna").observe(2, {"yield": 0.75})
    journal.values = {0.75: ("anna", 2, "yield", 0.0), value: (user, number, outcome, 0.0)}
    if value == 0.75:  # the value is stored twice
        study.as_user("anna").observe(2, {"purity": 0.75})
        journal.values = {0.75: ("anna", 2, "yield", 0.0), 0.5: ("anna", 0, "yield", 0.0)}
    persons.compare(tmp_path / "store.db", journal, [], failures)
    assert (failures == []) == ((user, number, outcome, value) == ("anna", 0, "yield", 0.5)), failures


def test_many_processes_make_every_call_exactly_once_in_postgresql(program, postgresql):
    figures = clean(program("crowd").run(workers=6, calls=25, suggesters=0, store="postgresql"))
    assert figures["mixed"]["calls"] == 150


def test_a_fault_at_a_write_or_fsync_leaves_a_complete_event_or_none(program):
    syscalls = program("syscalls")
    reason = syscalls.missing()
    if reason is not None:
        pytest.skip(reason)
    assert clean(syscalls.run(most=1))["faults"] > 0


def test_a_full_disk_is_a_store_error_and_loses_no_call(program):
    figures = clean(program("disk_full").run(step=997, every=20))
    assert figures["observe"]["outcomes"]["StoreError"] > 0 and figures["observe"]["outcomes"]["done"] > 0


def test_a_damaged_file_gives_right_data_or_a_store_error(program):
    figures = clean(program("damage").run(damages=90, logs=30))
    assert figures["file"]["damages"] == 90 and figures["log"]["damages"] == 30
    for damaged in figures.values():
        assert damaged["salvaged_events"] == damaged["intact_events"] > 0


def test_a_crowd_makes_every_call_exactly_once(program):
    assert clean(program("crowd").run(workers=6, calls=25, suggesters=0))["mixed"]["calls"] == 150


def test_simultaneously_pending_points_have_a_minimum_distance(program):
    figures = program("crowd").run(workers=0, suggesters=4, suggestions=60)
    assert figures["separation"]["suggestions"] == 60
    clean(figures)


def test_the_order_of_arrival_does_not_matter(program):
    assert clean(program("histories").run(histories=90))["histories"] == 90


@pytest.mark.parametrize("route", ["sqlite", "postgresql", "http"])
def test_calls_of_handles_that_have_not_read_a_revision_mean_what_they_had_read(program, route, request):
    if route == "postgresql":
        request.getfixturevalue("postgresql")
    reason = program("service").missing() if route == "http" else None
    if reason is not None:
        pytest.skip(reason)
    store = "sqlite" if route == "http" else route
    figures = clean(program("sleeping_handles").run(histories=20, store=store, http=int(route == "http"), seed=6))
    assert figures["histories"] == 20 and figures["carried"] > 30 and figures["refused"] > 3


def test_the_model_of_handles_notices_what_is_stored_wrongly(program, monkeypatch):
    handles = program("sleeping_handles")
    shown = handles.shown
    monkeypatch.setattr(handles, "shown", lambda study: [each | {"outside": False} for each in shown(study)])
    figures = handles.run(histories=20, seed=2, shorten=1)
    assert figures["failures"] > 0 and "outside" in figures["first_failures"][0]


def test_a_value_long_after_its_lease_is_accepted_and_used(program):
    clean(program("leases").run())


def test_four_weeks_of_a_laboratory(program):
    pytest.importorskip("pandas")
    assert len(clean(program("laboratory").run())["weeks"]) == 4


def test_opening_needs_no_refit(program):
    figures = clean(program("open").run(observations=200, events=2000, calls=50))
    assert figures["bayes_opt"]["refits"] == 0 and figures["random_search"]["events"] == 2005
    assert figures["tree_search"]["events"] == 2005


def test_hostile_stores_are_refused_and_never_executed(program):
    assert clean(program("hostile").run(every=9, megabytes=2))["cases"] > 30


def test_hostile_stores_give_problems_over_http(program):
    reason = program("service").missing() or (None if shutil.which("openssl") else "openssl is not installed")
    if reason is not None:
        pytest.skip(reason)
    figures = clean(program("hostile").run(every=60, megabytes=2, serve=1))
    assert figures["cases"] > 10 and figures["statuses"][503] > 50


@pytest.mark.filterwarnings("ignore:the evaluation of trial:belated.BelatedWarning")
@pytest.mark.parametrize("engine", ["processes", "dask", "ray"])
def test_killed_workers_lose_no_trial_and_no_report(program, engine):
    if engine != "processes":
        pytest.importorskip({"dask": "distributed", "ray": "ray"}[engine], reason=f"{engine} is not installed")
    figures = clean(program("workers").run(kills=2, workers=2, every=10, engine=engine))
    events = figures["events"]
    assert figures["kills"] == 2 and events["New"] + events["Stopped"] == figures["trials"]
    assert 0 < figures["accepted_reports"] <= events["Reported"]

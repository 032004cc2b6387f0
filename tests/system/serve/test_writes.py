"""Every write counts once: keys of requests, and the events that a client has read."""

import itertools

import pytest

import belated as bl
from tests.system.serve.test_api import ok, refused, synced

# Every request that changes a trial, as (path, body), for trial 0.
WRITES = {
    "observe": ("trials/0/observe", {"value": 1.0}),
    "amend": ("trials/0/observe", {"value": 2.0, "amend": True}),
    "replicate": ("trials/0/observe", {"value": 4.0, "replicate": True}),
    "fail": ("trials/0/fail", {"error": "boom"}),
    "abandon": ("trials/0/abandon", {}),
    "abandon all": ("abandon", {"numbers": [0, 1]}),
    "report": ("trials/0/report", {"step": 1, "value": 0.5}),
    "stop": ("trials/0/stop", {}),
    "note": ("trials/0/note", {"remark": "cloudy"}),
    "confirm": ("trials/0/confirm", {}),
    "withdraw": ("trials/0/withdraw", {"reason": "contaminated"}),
    "withdraw all": ("withdraw", {"numbers": [0], "reason": "all"}),
    "suggest": ("suggest", {"n": 2}),
    "add": ("add", {"params": {"x": 0.25}, "value": 3.0}),
    "table": ("table", {"columns": ["number", "value"], "rows": [["0", "8,5"]], "moved": True, "amend": [0]}),
}


def facts(study):
    """The data of all trials and the number of events."""
    synced(study)
    return [repr(trial) + repr(trial.remarks) for trial in study.trials], study._log.n_events()


@pytest.mark.parametrize("first", WRITES)
def test_a_write_sent_again_after_every_other_write_changes_nothing(client, create, path, first):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, curve=bl.Curve(3), seed=0))
    study.suggest(n=3)
    where, body = WRITES[first]
    # A value has to be there before it can be withdrawn or confirmed.
    if "withdraw" in first or first in ("amend", "replicate", "confirm"):
        study.observe(0, 0.5)
    keyed = body | {"key": "first"}
    told = client.post(f"{path}/{where}", json=keyed)
    assert told.status_code == 200, told.text
    for second in WRITES:
        other, more = WRITES[second]
        client.post(f"{path}/{other}", json=more)  # may be refused
        before = facts(study)
        again = client.post(f"{path}/{where}", json=keyed)
        assert again.status_code == 200, (second, again.text)
        assert facts(study) == before, second


# Requests without effect, each with the state of the trial, whose value was 0.5.
WITHOUT_EFFECT = {
    "observe": ("observed", {"value": 0.5}),
    "withdrawn": ("withdrawn", {"value": 0.5}),
    "fail": ("failed", {}),
    "abandon": ("abandoned", {}),
    "abandon all": ("abandoned", {"numbers": [0]}),
    "report": ("observed", {"step": 1, "value": 0.5}),
    "stop": ("stopped", {}),
    "note": ("observed", {"remark": "cloudy"}),
    "confirm": ("observed", {}),
    "table": ("observed", {"columns": ["number", "value"], "rows": [["0", "0.5"]], "moved": True}),
}


@pytest.mark.parametrize("first", WITHOUT_EFFECT)
def test_a_write_without_effect_has_none_when_it_is_sent_again(client, create, path, first):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, curve=bl.Curve(3), seed=0))
    study.suggest(n=2)
    state, body = WITHOUT_EFFECT[first]
    study.report(0, 0.5, 1)
    if state in ("observed", "withdrawn"):
        study.observe(0, 0.5)
    ends = {"failed": study.fail, "abandoned": study.abandon, "stopped": study.stop, "withdrawn": study.withdraw}
    if state in ends:
        ends[state](0)
    study.note(0, "cloudy")
    where = f"{path}/{WRITES['observe' if first == 'withdrawn' else first][0]}"
    keyed, before = body | {"key": "first"}, repr(synced(study).trials)
    ok(client.post(where, json=keyed))
    # The event with the key changes nothing, and other processes read it.
    assert repr(synced(study).trials) == before and [each.text for each in study.trial(0).remarks] == ["cloudy"]
    assert repr(bl.Study.load(study.name, study.store).trials) == before
    for second in WRITES:
        other, more = WRITES[second]
        client.post(f"{path}/{other}", json=more)  # may be refused
        before_again = facts(study)
        ok(client.post(where, json=keyed))
        assert facts(study) == before_again, second
    refused(client.post(f"{path}/trials/1/note", json={"remark": "x", "key": "first"}), 422, "key='first'")


def test_the_history_has_a_report_without_effect(client, study, path):
    study.suggest()
    study.fail(0)
    ok(client.post(f"{path}/trials/0/fail", json={"key": "k", "by": "Ana"}))
    last = ok(client.get(f"{path}/trials/0/history"))["events"][-1]
    assert (last["what"], last["by"], last["results"], last["remark"]) == ("noted", "Ana", [], None)


def test_a_table_without_known_trials_is_404_because_a_trial_may_get_its_number_later(client, study, path):
    pytest.importorskip("pandas")
    study.suggest()
    body = {"columns": ["number", "value"], "rows": [["7", "0.5"]], "moved": True}
    assert ok(client.post(f"{path}/table", json=body | {"dry_run": True, "key": "k"}))["refused"][0]["number"] == 7
    refused(client.post(f"{path}/table", json=body | {"key": "k"}), 404, "none of the trials")
    assert synced(study)._log.n_events() == 1


def test_a_report_sent_again_after_other_reports_does_not_stop_the_trial(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, curve=bl.Curve(3), stopping=bl.ASHA(), seed=0))
    study.suggest(n=6)
    body = {"step": 1, "value": 0.5, "key": "step 1"}
    assert ok(client.post(f"{path}/trials/0/report", json=body))["state"] == "pending"
    for number in range(1, 6):
        study.report(number, 0.5 + number, 1)
    before = facts(study)
    assert ok(client.post(f"{path}/trials/0/report", json=body))["state"] == "pending"
    assert facts(study) == before and study.should_stop(0)  # as a new report would find


def test_a_withdrawal_sent_again_does_not_take_back_a_new_value(client, study, path):
    study.observe(study.suggest(), 1.0)
    where, body = f"{path}/trials/0", {"reason": "contaminated", "key": "w"}
    assert ok(client.post(f"{where}/withdraw", json=body))["state"] == "withdrawn"
    ok(client.post(f"{where}/observe", json={"value": 2.0}))
    assert ok(client.post(f"{where}/withdraw", json=body))["value"] == 2.0
    # Another body is another request.
    refused(client.post(f"{where}/withdraw", json=body | {"reason": "spilled"}), 422, "key='w'", "withdraw (trial 0)")
    # Without a key, the number of events that the client has read protects the new value.
    assert refused(client.post(f"{where}/withdraw", json={"expected": 2}), 409)["trials"][0]["value"] == 2.0
    assert synced(study).trial(0).value == 2.0


@pytest.mark.parametrize(
    ("first", "second"), [*itertools.permutations(["observe", "fail", "note", "suggest", "add"], 2)]
)
def test_a_key_belongs_to_one_route(client, study, path, first, second):
    study.suggest(n=2)
    (one, body), (other, more) = WRITES[first], WRITES[second]
    ok(client.post(f"{path}/{one}", json=body | {"key": "k"}))
    before = facts(study)
    refused(
        client.post(f"{path}/{other}", json=more | {"key": "k"}), 422, "key='k' belongs to a call of", "another key"
    )
    assert facts(study) == before


def test_a_key_belongs_to_one_trial_and_one_body(client, study, path):
    study.suggest(n=2)
    ok(client.post(f"{path}/trials/0/fail", json={"error": "boom", "key": "k"}))
    for number, error in ((1, "boom"), (0, "bang"), (0, None)):
        refused(client.post(f"{path}/trials/{number}/fail", json={"error": error, "key": "k"}), 422, "key='k'")
    ok(client.post(f"{path}/add", json={"params": {"x": 0.5}, "value": 1.0, "key": "a"}))
    for body in ({"params": {"x": 0.5}, "value": 2.0}, {"params": {"x": 0.25}, "value": 1.0}):
        refused(client.post(f"{path}/add", json=body | {"key": "a"}), 422, "key='a' belongs to another call of add")
    found = ok(client.post(f"{path}/add", json={"params": {"x": 0.5}, "value": 1.0, "key": "a"}))
    assert found["number"] == 2 and synced(study).n_trials == 3


def test_keys_are_known_after_a_restart_and_in_exports(client, study, path, tmp_path, capsys):
    from belated import cli

    study.suggest()
    for name in ("fail", "note"):
        ok(client.post(f"{path}/{WRITES[name][0]}", json=WRITES[name][1] | {"key": name}))
    loaded = bl.Study.load(study.name, study.store)
    assert loaded._log.calls_with("fail") == ["fail"] and loaded._log.calls_with("note") == ["note"]
    assert not cli.main(["study", "export", study.store, study.name])
    (tmp_path / "export.jsonl").write_text(capsys.readouterr().out, encoding="utf-8")
    assert not cli.main(["study", "import", str(tmp_path / "export.jsonl"), f"sqlite:///{tmp_path / 'other.db'}"])
    other = bl.Study.load(study.name, f"sqlite:///{tmp_path / 'other.db'}")
    assert other._log.calls_with("note") == ["note"]


@pytest.mark.parametrize("write", [name for name in WRITES if name not in ("suggest", "add")])
def test_a_trial_that_changed_is_409_with_the_trial_as_it_is(client, create, path, write):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, curve=bl.Curve(3), seed=0))
    study.suggest(n=3)
    if "withdraw" in write or write in ("amend", "replicate", "confirm"):
        study.observe(0, 0.5)
    seen = ok(client.get(f"{path}/trials/0"))["event"]
    events = ok(client.get(path))["events"]
    study.note(0, "somebody else was here")  # another process
    where, body = WRITES[write]
    before = facts(study)
    for expected in (seen, events, 0, 10**6):
        reason = "changed since then" if expected < 10**6 else "the study has only"
        found = refused(client.post(f"{path}/{where}", json=body | {"expected": expected}), 409, reason)
        assert found["error"] == "TrialChanged" and found["trials"][0] == ok(client.get(f"{path}/trials/0"))
    assert facts(study) == before
    # A change of another trial does not count, and the present state is accepted.
    present = ok(client.get(f"{path}/trials/0"))["event"]
    study.note(2, "not this one")
    ok(client.post(f"{path}/{where}", json=body | {"expected": present}))


def test_a_repetition_with_a_key_comes_before_the_events_that_were_read(client, study, path):
    study.suggest()
    body = {"value": 1.0, "key": "k", "expected": 1}
    first = ok(client.post(f"{path}/trials/0/observe", json=body))
    assert ok(client.post(f"{path}/trials/0/observe", json=body)) == first
    study.note(0, "more")
    assert ok(client.post(f"{path}/trials/0/observe", json=body))["event"] == first["event"] + 1


def test_the_event_of_a_trial_is_the_number_of_events_after_its_last_one(client, study, path):
    study.suggest(n=2)
    study.observe(0, 1.0)
    study.note(1, "later")
    study.revise(space={"x": (0.0, 2.0)})
    assert [trial["event"] for trial in ok(client.get(f"{path}/trials"))["trials"]] == [3, 4]
    for number, event in ((0, 3), (1, 4)):
        changed = ok(client.get(f"{path}/trials", params={"since": event}))["trials"]
        assert [trial["number"] for trial in changed] == [0, 1]  # the revision changed the points of all trials
        ok(client.post(f"{path}/trials/{number}/note", json={"remark": "x", "expected": event}))


def test_a_report_that_the_rule_answers_by_a_stop_has_one_expected_number(client, create, path):
    create(bl.RandomSearch({"x": (0.0, 1.0)}, curve=bl.Curve(3), stopping=bl.ASHA(), seed=0))
    ok(client.post(f"{path}/suggest", json={"n": 2}))
    event = 2
    for step in (1, 2):
        body = {"step": step, "value": 1.0, "expected": event, "key": f"step {step}"}
        event = ok(client.post(f"{path}/trials/1/report", json=body))["event"]
    assert ok(client.post(f"{path}/trials/1/report", json=body))["event"] == event


def test_conflicts_about_values_have_the_trial(client, study, path):
    study.suggest(n=2)
    ok(client.post(f"{path}/trials/0/observe", json={"value": 1.0}))
    found = refused(client.post(f"{path}/trials/0/observe", json={"value": 2.0}), 409)
    assert found["error"] == "AlreadyObserved" and [trial["value"] for trial in found["trials"]] == [1.0]


def test_lists_are_abandoned_all_or_none(client, study, path):
    study.suggest(n=4)
    study.observe(3, 1.0)
    found = refused(client.post(f"{path}/abandon", json={"numbers": [0, 3]}), 409)
    assert [trial["number"] for trial in found["trials"]] == [0, 3]
    assert synced(study).trial(0).state == "pending"
    found = ok(client.post(f"{path}/abandon", json={"numbers": [0, 1], "by": "Ana"}))
    assert [(trial["state"], trial["finished_by"]) for trial in found["trials"]] == [("abandoned", "Ana")] * 2
    refused(client.post(f"{path}/abandon", json={"numbers": [9]}), 404)
    assert ok(client.post(f"{path}/abandon", json={"numbers": []}))["trials"] == []


def test_wells_are_stored_with_a_plate(client, study, path):
    body = {"n": 2, "attrs": [{"well": "A1"}, None], "key": "plate"}
    found = ok(client.post(f"{path}/suggest", json=body))["trials"]
    assert [trial["attrs"] for trial in found] == [{"well": "A1"}, {}]
    assert ok(client.post(f"{path}/suggest", json=body))["trials"] == found
    refused(client.post(f"{path}/suggest", json={"n": 2, "attrs": [{"well": "A1"}]}), 422, "attrs")
    assert synced(study).n_trials == 2


# Single points, histories, checks and tables.


def test_a_point_that_was_not_suggested_is_added(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0), "kind": ["a", ("b", 1)]}, seed=0))
    body = {"params": {"x": 0.5, "kind": ["b", 1]}, "value": 2.0, "std": 0.1, "attrs": {"well": "C3"}, "by": "Ana"}
    found = ok(client.post(f"{path}/add", json=body))
    trial = synced(study).trial(0)
    assert trial.params == {"x": 0.5, "kind": ("b", 1)} and (trial.value, trial.std) == (2.0, 0.1)
    assert found["started_by"] == "Ana" and found["attrs"] == {"well": "C3"}
    assert ok(client.post(f"{path}/add", json={"params": {"x": 0.25, "kind": "a"}}))["state"] == "pending"
    refused(client.post(f"{path}/add", json={"params": {"x": 0.5}, "value": 1.0}), 422)
    refused(client.post(f"{path}/add", json={"value": 1.0}), 422, "params")
    assert synced(study).n_trials == 2


def test_a_revision_that_does_not_exist_is_422(client, study, path):
    study.suggest(n=2)
    for where, body in (
        ("add", {"params": {"x": 0.5}}),
        ("add", {"params": [0.5]}),
        WRITES["observe"],
        WRITES["suggest"],
    ):
        refused(client.post(f"{path}/{where}", json=body | {"revision": 99}), 422, "revision=99")
    # Another process may have revised the study.
    study.revise(space={"x": (0.0, 2.0)})
    assert ok(client.post(f"{path}/add", json={"params": {"x": 1.5}, "revision": 2}))["number"] == 2


def test_a_candidate_is_added_by_its_row(client, create, path):
    create(bl.RandomSearch(candidates=[[0.0], [0.5], [1.0]], seed=0))
    assert ok(client.post(f"{path}/add", json={"params": 1, "value": 2.0}))["index"] == 1
    assert ok(client.post(f"{path}/add", json={"params": [1.0], "value": 3.0}))["index"] == 2


def test_the_history_says_who_replaced_what(client, create, path):
    outcomes = {"yield": "maximize", "purity": bl.AtLeast(0.9)}
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, outcomes=outcomes, seed=0))

    def post(verb, by, **body):
        return ok(client.post(f"{path}/trials/0/{verb}", json=body | {"by": by}))

    study.suggest(n=2)
    post("observe", "Ana", value={"yield": 0.5})
    study.as_user("Ben").observe(1, {"yield": 0.1})  # another trial
    post("observe", "Ben", value={"yield": 0.75, "purity": 0.95}, std=0.1, amend=True)
    post("withdraw", "Cem", reason="contaminated", outcome="purity")
    post("note", "Dan", remark="cloudy")
    study.revise(outcomes={"cost": bl.Record(), "yield": "maximize", "purity": bl.AtLeast(0.9)})
    post("fail", "Eva", error="spilled", outcome="purity")
    post("observe", "Ana", value={"cost": 3.0})
    found = ok(client.get(f"{path}/trials/0/history"))
    events = found["events"]
    assert found["number"] == 0 and [each["by"] for each in events] == [None, "Ana", "Ben", "Cem", "Dan", "Eva", "Ana"]
    assert [each["what"] for each in events] == ["suggested", *["resulted"] * 3, "noted", *["resulted"] * 2]
    replaced = [
        [(each["outcome"], each["what"], each["value"], each["replaced"]) for each in event["results"]]
        for event in events
    ]
    assert replaced == [
        [],
        [("yield", "new", 0.5, None)],
        [("yield", "amended", 0.75, 0.5), ("purity", "new", 0.95, None)],
        [("purity", "withdrawn", None, 0.95)],
        [],
        [("purity", "failed", None, None)],
        [("cost", "new", 3.0, None)],
    ]
    assert [each["std"] for each in events[2]["results"]] == [0.1, 0.1]
    assert (events[3]["reason"], events[4]["remark"], events[5]["error"]) == ("contaminated", "cloudy", "spilled")
    written = [record.at for record in study._store.events(study._log.id, 0)]
    assert [written[each["event"] - 1] for each in events] == [each["at"] for each in events]
    assert events[-1]["event"] == ok(client.get(f"{path}/trials/0"))["event"] == synced(study)._log.n_events()
    refused(client.get(f"{path}/trials/7/history"), 404)


def test_histories_of_added_and_reported_trials(client, create, path):
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, curve=bl.Curve(3), seed=0))
    study.add({"x": 0.5}, 1.0)
    study.suggest()
    study.report(1, 0.5, 1)
    study.report(1, float("nan"), 2)
    study.stop(1)
    first = ok(client.get(f"{path}/trials/0/history"))["events"]
    assert [(each["what"], each["results"][0]["value"]) for each in first] == [("added", 1.0)]
    events = ok(client.get(f"{path}/trials/1/history"))["events"]
    assert [(each["what"], each["step"], each["value"]) for each in events] == [
        ("suggested", None, None),
        ("reported", 1, 0.5),
        ("reported", 2, None),
        ("resulted", None, None),
    ]
    assert [each["what"] for each in events[3]["results"]] == ["stopped"]


READ = [
    ("0.81", [0.81], None),
    (" 1.234 ", [1.234], None),
    ("1,5", [1.5], None),
    ("0,123", [0.123], None),
    ("12,3456", [12.3456], None),
    ("-1e-3", [-0.001], None),
    ("1,5e3", [1500.0], None),
    (".5", [0.5], None),
    ("1,234", [1.234, 1234.0], "decimals or thousands"),
    ("-12,000", [-12.0, -12000.0], "decimals or thousands"),
    ("", [], "empty"),
    ("5 %", [], "percent"),
    ("5%", [], "percent"),
    ("<0.5", [], "bound"),
    ("> 3", [], "bound"),
    ("≤0.5", [], "bound"),
    ("nan", [], "finite"),
    ("NaN", [], "finite"),
    ("inf", [], "finite"),
    ("-Infinity", [], "finite"),
    ("1e999", [], "finite"),
    ("n.d.", [], "finite"),
    ("٣٫٥", [], "ASCII"),
    ("\uff11.5", [], "ASCII"),
    ("−1.5", [], "ASCII"),
    ("1\u00a0234", [], "ASCII"),
    ("1 234", [], "space"),
    ("1_000", [], "underscore"),
    ("1,234,567", [], "several separators"),
    ("1.234,5", [], "several separators"),
    ("1'234.5", [], "several separators"),
    ("5 mg", [], "unit"),
    ("5mg", [], "unit"),
    ("0x10", [], "unit"),
    ("yes", [], "number"),
    ("=1+1", [], "number"),
    ("<script>alert(1)</script>", [], "bound"),
]


@pytest.mark.parametrize(("text", "readings", "reason"), READ)
def test_texts_are_read_as_one_number_or_refused_with_the_reason(text, readings, reason):
    from belated.optimizers.tables.cells import readings_of

    found, why = readings_of(text)
    assert found == readings and (why is None if reason is None else reason in why)


def test_a_check_says_what_is_read_and_whether_it_would_be_marked(client, create, path):
    study = create(bl.BayesOpt({"x": (0.0, 1.0)}, seed=0))
    for trial in study.suggest(n=12):
        trial.observe(0.5 + 0.1 * trial.params["x"])
    study.suggest()
    where, before = f"{path}/trials/12/check", synced(study)._log.n_events()
    found = ok(client.post(where, json={"text": "0,55"}))
    assert found == {"value": 0.55, "readings": [0.55], "reason": None, "mark": None, "unknown": None}
    found = ok(client.post(where, json={"text": "57.0"}))
    assert found["value"] == 57.0 and found["mark"]["number"] == 12 and 0.0 < found["mark"]["low"] < 1.0
    marked = ok(client.post(f"{path}/trials/12/observe", json={"value": 57.0, "check": True}))["warnings"]
    assert marked == [found["mark"]]
    # A value that is there can be checked, too: it would be replaced.
    assert ok(client.post(where, json={"text": "0.55"}))["mark"] is None
    found = ok(client.post(where, json={"text": "1,234"}))
    assert found["value"] is None and found["readings"] == [1.234, 1234.0] and found["mark"] is None
    refused(client.post(f"{path}/trials/99/check", json={"text": "1"}), 404)
    refused(client.post(where, json={"text": "1" * 101}), 422)
    refused(client.post(where, json={"text": "1", "outcome": "none"}), 422, "outcome")
    assert synced(study)._log.n_events() == before + 1


def test_a_check_of_an_outcome_knows_its_plausible_range(client, create, path):
    outcomes = {"yield": bl.Maximize(plausible=(0.0, 1.0)), "note": bl.Record()}
    create(bl.BayesOpt({"x": (0.0, 1.0)}, outcomes=outcomes, seed=0)).suggest()
    where = f"{path}/trials/0/check"
    found = ok(client.post(where, json={"text": "81", "outcome": "yield"}))
    assert found["value"] is None and found["readings"] == [81.0] and "plausible" in found["reason"]
    found = ok(client.post(where, json={"text": "0.81", "outcome": "yield"}))
    assert found["value"] == 0.81 and found["unknown"] == "no trial has a value"
    assert ok(client.post(where, json={"text": "81", "outcome": "note"}))["value"] == 81.0
    refused(client.post(where, json={"text": "81"}), 422, "outcome")


def worklist(study):
    """The columns and rows of a worklist, as a page reads them from a file."""
    table = study.worklist().drop(columns=["since_utc", "due_utc"])
    rows = [[None if each != each else each for each in row] for row in table.astype(object).to_numpy().tolist()]
    return list(table.columns), [[str(cell) if isinstance(cell, float) else cell for cell in row] for row in rows]


def test_a_table_is_summarised_and_then_stored_once(client, study, path):
    pytest.importorskip("pandas")
    study.suggest(n=4)
    columns, rows = worklist(study)
    k = columns.index("value")
    for row, value in zip(rows, ["0,5", "0,75", "x", None], strict=True):
        row[k] = value
        row[columns.index("params_x")] = row[columns.index("params_x")].replace(".", ",")
    body = {"columns": columns, "rows": rows}
    before = synced(study)._log.n_events()
    summary = ok(client.post(f"{path}/table", json=body | {"dry_run": True}))
    assert synced(study)._log.n_events() == before == summary["events"]
    assert summary["new"] == [[0, None], [1, None]] and summary["empty"] == [3]
    assert summary["changes"] == [
        {"number": number, "outcome": None, "value": value, "stored": None, "attrs": {}}
        for number, value in ((0, 0.5), (1, 0.75))
    ]
    [cell] = summary["refused"]
    assert (cell["row"], cell["number"], cell["column"], cell["cell"]) == (4, 2, "value", "x") and cell["reason"]
    assert "2 new" in summary["text"]
    keyed = body | {"expected": summary["events"], "key": "plate 1", "by": "Ana"}
    # Another client corrects a trial of the table first.
    study.observe(1, 9.0)
    changed = refused(client.post(f"{path}/table", json=keyed), 409)
    assert [trial["number"] for trial in changed["trials"]] == [1]
    assert synced(study).trial(0).state == "pending"
    summary = ok(client.post(f"{path}/table", json=body | {"dry_run": True}))
    assert summary["new"] == [[0, None]] and {each["number"] for each in summary["refused"]} == {1, 2}
    keyed["expected"] = summary["events"]
    stored = ok(client.post(f"{path}/table", json=keyed))
    assert stored["new"] == [[0, None]] and study.trial(0).value == 0.5 and study.trial(0).finished_by == "Ana"
    n_events = synced(study)._log.n_events()
    again = ok(client.post(f"{path}/table", json=keyed))
    assert again["new"] == [] and [0, None] in again["unchanged"] and synced(study)._log.n_events() == n_events
    refused(client.post(f"{path}/table", json=keyed | {"by": "Ben"}), 422, "key='plate 1'")
    refused(client.post(f"{path}/table", json=keyed | {"moved": True}), 422, "key='plate 1'")


def test_the_server_does_not_warn_of_what_an_answer_has(tmp_path):
    pytest.importorskip("pandas")
    from campaigns import service

    url = f"sqlite:///{tmp_path / 'a.db'}"
    study = bl.Study("a", url, bl.BayesOpt({"x": (0.0, 1.0)}, seed=0))
    for trial in study.suggest(n=12):
        trial.observe(0.5 + 0.1 * trial.params["x"])
    study.suggest(n=2)
    body = {"columns": ["number", "value"], "rows": [["12", "57"], ["13", "x"]], "moved": True}
    with service.Service(url) as running:
        with running.client() as own:
            for more in ({"dry_run": True}, {}):
                told = ok(own.post("/v1/studies/a/table", json=body | more))
                assert len(told["refused"]) == len(told["marked"]) == 1
            assert ok(own.post("/v1/studies/a/trials/13/observe", json={"value": 57.0, "check": True}))["warnings"]
        assert running.stop() == (0, "")


def test_a_summary_has_the_new_and_the_present_values(client, create, path):
    pytest.importorskip("pandas")
    study = create(bl.RandomSearch({"x": (0.0, 1.0)}, outcomes={"a": "maximize", "b": bl.Record()}, seed=0))
    attrs = {"well": "A1", "plate": 3, "is_control": True, "protocol": "x" * 41} | {f"x{i}": i for i in range(9)}
    study.suggest(n=4, attrs=[attrs, None, {"well": "A3"}, None])
    study.observe(0, {"a": 1.0})
    columns, rows = ["number", "outcome_a", "outcome_b"], [[0, "2", "3"], [1, "failed", ""], [2, "", "abandoned"]]
    body = {"columns": columns, "rows": [*rows, [3, "1", ""], [3, "1.0", ""]], "moved": True, "amend": True}
    told = ok(client.post(f"{path}/table", json=body | {"dry_run": True}))
    changes = [(each["number"], each["outcome"], each["stored"], each["value"]) for each in told["changes"]]
    assert changes == [
        *((0, "a", 1.0, 2.0), (0, "b", None, 3.0), (1, "a", None, "failed"), (2, "b", None, "abandoned")),
        (3, "a", None, 1.0),
    ]
    assert told["changes"][0]["attrs"] == {"well": "A1", "plate": 3, "x0": 0, "x1": 1, "x2": 2, "x3": 3}
    assert told["new"] == [[0, "b"], [1, "a"], [2, "b"], [3, "a"]] and told["corrected"] == [[0, "a"]]
    # A trial whose point is corrected keeps its value.
    moved = {"columns": ["number", "params_x", "outcome_a"], "rows": [[0, 0.125, "1"]], "moved": True, "amend": True}
    told = ok(client.post(f"{path}/table", json=moved | {"dry_run": True}))
    assert told["moved"] == [0] and told["changes"] == []


def test_tables_that_cannot_be_read_are_refused(client, study, path):
    pytest.importorskip("pandas")
    study.suggest(n=2)
    points = [[number, study.trial(number).params["x"]] for number in (0, 1)]

    def post(status, *words, **body):
        return refused(client.post(f"{path}/table", json=body), status, *words)

    post(422, "'number'", columns=["value"], rows=[["1"]])
    post(422, "twice", columns=["number", "value", "value"], rows=[])
    post(422, "more cells", columns=["number"], rows=[["1", "2"]])
    post(422, "study_id", columns=["number", "value"], rows=[["0", "1"]])
    post(422, "rows", columns=["number"], rows=[[{}]])
    unclear = {"columns": ["number", "params_x", "value"], "rows": [[*points[0], "1,234"]]}
    post(422, "decimal", **unclear)
    refused(client.post(f"{path}/table", json={"columns": [], "rows": []}), 422)
    assert synced(study).trial(0).state == "pending"
    for decimal, value in ((",", 1.234),):
        ok(client.post(f"{path}/table", json=unclear | {"decimal": decimal}))
        assert synced(study).trial(0).value == value
    identified = f"id-{ok(client.get(path))['study_id']:012x}"
    body = {"columns": ["number", "study_id", "value"], "rows": [[1, identified, 2.5]]}
    assert ok(client.post(f"{path}/table", json=body))["new"] == [[1, None]]
    body["rows"][0][1] = "id-000000000001"
    assert "another study" in ok(client.post(f"{path}/table", json=body))["refused"][0]["reason"]
    assert ok(client.post(f"{path}/table", json={"columns": ["number", "value"], "rows": []}))["new"] == []


def test_a_server_without_pandas_says_so(study, monkeypatch):
    import asyncio

    from starlette.exceptions import HTTPException

    from belated.optimizers.tables import files
    from belated.serve import app, messages

    def missing(caller):
        raise ImportError(f"{caller} needs pandas: pip install pandas")

    monkeypatch.setattr(files, "imported_pandas", missing)

    async def call(work, body):
        return work(study)

    with pytest.raises(HTTPException, match="needs pandas") as error:
        asyncio.run(app.table(call, messages.Table(columns=["number"], rows=[])))
    assert error.value.status_code == 501


def test_a_study_names_its_parameters_and_outcomes(client, create, path):
    outcomes = {"yield": bl.Maximize(at_least=0.5), "impurity": bl.AtMost(0.1), "colour": bl.Record()}
    create(bl.RandomSearch({"x": (0.0, 1.0), "kind": ["a", "b"]}, outcomes=outcomes, seed=0))
    found = ok(client.get(path))
    assert found["parameters"] == ["x", "kind"]
    assert found["outcomes"] == [
        {"name": "yield", "goal": "maximize", "low": 0.5, "high": None},
        {"name": "impurity", "goal": "within", "low": None, "high": 0.1},
        {"name": "colour", "goal": "record", "low": None, "high": None},
    ]

"""The server works when many clients use one study at the same time, and after the store has been unavailable."""

import os
import threading

import pytest

import belated as bl
from campaigns import service
from tests.system.serve.test_api import ok, refused


def together(*works):
    """Call each function in a separate thread, and raise the first error."""
    errors = []

    def carry_out(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=carry_out, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_each_suggestion_is_given_to_one_client(running, study, path):
    numbers = []

    def work():
        with running.client() as client:
            for _ in range(12):
                (trial,) = ok(client.post(f"{path}/suggest"))["trials"]
                numbers.append(trial["number"])
                ok(client.post(f"{path}/trials/{trial['number']}/observe", json={"value": trial["params"]["x"]}))

    def local():
        # Calls of this study reach the store directly, as from another process.
        for _ in range(12):
            trial = study.suggest()
            numbers.append(trial.number)
            study.observe(trial, trial.params["x"])

    together(*[work] * 7, local)
    assert sorted(numbers) == list(range(8 * 12))
    study.sync()
    assert all(trial.value == trial.params["x"] for trial in study.trials)
    assert len({trial.params["x"] for trial in study.trials}) == 8 * 12


def test_one_key_starts_one_trial_for_many_clients(running, study, path):
    found = []

    def work():
        with running.client() as client:
            found.append(ok(client.post(f"{path}/suggest", json={"key": "job", "n": 2})))

    together(*[work] * 8)
    assert all(each == found[0] for each in found) and study.n_trials == 2


def test_a_study_is_created_once_by_many(running, request, path):
    made = []
    rows = {"kind": "i", "rows": [[1], [2]]}
    definition = {"problem": {"candidates": rows}, "strategy": {"kind": "RandomSearch"}, "seed": 1}

    def work():
        with running.client() as client:
            answer = client.post("/v1/studies", json={"name": request.node.name, "definition": definition})
            made.append(answer.status_code)

    together(*[work] * 6)
    assert sorted(made) == [200] * 5 + [201]


def test_a_server_serves_more_studies_than_it_keeps_open(running, tmp_path):
    from belated.serve.studies import MAX_OPEN

    url = f"sqlite:///{tmp_path / 'many.db'}"
    optimizer = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    names = [f"s{i}" for i in range(MAX_OPEN + 5)]
    for name in names:
        bl.Study(name, url, optimizer)
    with service.Service(url) as other, other.client() as client:
        for _ in range(2):
            for name in names:
                ok(client.post(f"/v1/studies/{name}/suggest"))
        counts = {ok(client.get(f"/v1/studies/{name}"))["trials"] for name in names}
        assert counts == {2} and other.stop() == (0, "")


def test_a_request_with_the_id_of_a_deleted_study_is_refused(client, running, study, path):
    """The trials of a deleted study are never confused with the trials of a new study of the same name."""
    first = ok(client.post(f"{path}/suggest"))
    assert first["study_id"] == ok(client.get(path))["study_id"] == study._log.id
    old = {"study_id": first["study_id"]}
    ok(client.post(f"{path}/trials/0/observe", params=old, json={"value": 1.0}))
    bl.Study.delete(study.name, running.url)
    again = bl.Study(study.name, running.url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    new = {"study_id": again._log.id}
    # The server has the deleted study open, but finds the new study at once.
    assert ok(client.post(f"{path}/suggest", params=new))["study_id"] == again._log.id
    for request, body in (("suggest", {}), ("trials/0/observe", {"value": 2.0}), ("trials/0/fail", {})):
        found = refused(client.post(f"{path}/{request}", params=old, json=body), 409, "was deleted and created again")
        assert found["error"] == "OtherStudy"
    for request in ("", "/definition", "/best", "/forecast", "/finals", "/importance", "/trials", "/trials/0"):
        refused(client.get(path + request, params=old), 409, str(old["study_id"]))
        ok(client.get(path + request, params=new))
    ok(client.post(f"{path}/trials/0/observe", params=new, json={"value": 3.0}))
    assert again.best_value_ == 3.0 and again.n_trials == 1
    bl.Study.delete(study.name, running.url)
    # The server had the deleted study open.
    for _ in range(2):
        refused(client.get(path, params=new), 404, "there is no study")


def test_a_study_that_was_deleted_elsewhere_is_created_again(client, running, study, path):
    ok(client.post(f"{path}/suggest"))
    definition = {"problem": {"candidates": {"kind": "f", "rows": [[1.0]]}}, "strategy": {"kind": "RandomSearch"}}
    bl.Study.delete(study.name, running.url)
    made = ok(client.post("/v1/studies", json={"name": study.name, "definition": definition}), 201)
    assert made["study_id"] != study._log.id and ok(client.post(f"{path}/suggest"))["study_id"] == made["study_id"]


@pytest.mark.skipif(os.name != "posix", reason="moves a file that is open")
def test_a_missing_store_is_503_until_it_is_back(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    bl.Study("s", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)).suggest()
    with service.Service(url) as running, running.client() as client:
        ok(client.get("/v1/studies/s"))
        os.rename(tmp_path / "a.db", tmp_path / "b.db")
        for call in (client.get, client.post):
            found = refused(call("/v1/studies/s/suggest" if call == client.post else "/v1/studies/s"), 503)
            assert found["error"] == "StoreError"
        refused(client.get("/v1/studies"), 503)
        definition = {"problem": {"candidates": {"kind": "f", "rows": [[1.0]]}}, "strategy": {"kind": "RandomSearch"}}
        refused(client.post("/v1/studies", json={"name": "s", "definition": definition}), 503)
        os.rename(tmp_path / "b.db", tmp_path / "a.db")
        ok(client.get("/v1/studies"))
        assert ok(client.post("/v1/studies/s/suggest"))["trials"][0]["number"] == 1
        code, said = running.stop()
        lines = [line.split("': ")[0] for line in said.splitlines()]
        assert lines == [
            "belated: GET '/v1/studies/s",
            "belated: POST '/v1/studies/s/suggest",
            "belated: GET '/v1/studies",
            "belated: POST '/v1/studies",
        ]
        assert code == 0 and running.token not in said


def test_a_missing_database_is_503_without_its_password(postgres):
    url = postgres.url(user="locked", password="s3cr3t")
    bl.Study("s", postgres.url(), bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)).suggest()
    for statement in ("USAGE ON SCHEMA belated", "SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA belated"):
        postgres.execute(f"GRANT {statement} TO locked")
    with service.Service(url) as running, running.client() as client:
        assert "s3cr3t" not in running.address
        assert ok(client.post("/v1/studies/s/suggest"))["trials"][0]["number"] == 1
        postgres.execute("REVOKE UPDATE ON belated.heads FROM locked")
        answer = client.post("/v1/studies/s/suggest")
        assert refused(answer, 503)["error"] == "StoreError" and "s3cr3t" not in answer.text
        postgres.execute("GRANT UPDATE ON belated.heads TO locked")
        assert ok(client.post("/v1/studies/s/suggest"))["trials"][0]["number"] == 2
        # A call that is made while the database server is stopped waits until it has started again.
        postgres.stop("immediate")
        postgres.start()
        assert ok(client.post("/v1/studies/s/suggest"))["trials"][0]["number"] == 3
        code, said = running.stop()
        assert code == 0 and "s3cr3t" not in said

"""The arguments of a study: names, keys, leases and clocks; and two processes that create a study at the same time."""

import pickle

import pytest

import belated as bl
from belated.store.checksums import with_checksum
from belated.store.sqlite import SqliteStore

SPACE = {"x": (0.0, 1.0)}
UNUSABLE = [".", "..", "", 3, b"s", "a\nb", "a\0b", "k" * 2501, "é" * 1251, "\ud800"]


def optimizer(**arguments):
    return bl.RandomSearch(SPACE, **({"seed": 1} | arguments))


# Names and keys.


@pytest.mark.parametrize("name", ["s", " ", "é: 'ü'", "k" * 2500, "é" * 1250])
def test_printable_strings_are_names_and_keys(store, name):
    study = bl.Study(name, store, optimizer())
    trial = study.suggest(key=name)
    for each in (study, bl.Study.load(name, store)):
        each.observe(0, 1.0, key=name)
        assert each.suggest(key=name) == trial and each.name == name
    assert len(study.trials) == 1 and repr(name) in repr(study)


@pytest.mark.parametrize("given", [*UNUSABLE, None], ids=ascii)
def test_unusable_names_are_refused(store, tmp_path, given):
    with pytest.raises(bl.errors.InvalidSetting, match="^name=.*: pass a printable string"):
        bl.Study(given, store, optimizer())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("given", UNUSABLE, ids=ascii)
def test_unusable_keys_are_refused(store, given):
    study = bl.Study("s", store, optimizer())
    study.suggest()
    message = "^key=.* is not usable: pass a printable string of at most 2500 bytes"
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        study.suggest(key=given)
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        study.observe(0, 1.0, key=given)
    assert study._log.n_events() == 1


@pytest.mark.parametrize("key", ["suggest", "suggest:0", "observe"])
def test_a_stored_key_of_another_form_is_refused(store, key):
    study = bl.Study("s", store, optimizer())
    trial = study.suggest()
    with study._store.writing(study._log.id) as log:
        log.append([with_checksum(study._log.id, 1, key, 0.5, '{"Abandoned":{"number":0}}')])
    # Each call that reads the log raises the error.
    for read in (study.sync, lambda: study.trial(0), lambda: study.trials, lambda: bl.Study.load("s", store)):
        with pytest.raises(bl.errors.StoreError, match="^study 's' has an event with a key that no call can have had$"):
            read()
    # The event was not applied.
    assert trial.state == "pending" and study._log.n_events() == 1


def test_a_key_holds_for_the_context_and_the_number_of_trials(store):
    study = bl.Study("s", store, optimizer(context={"age": (0, 9)}))
    trials = study.suggest(2, {"age": 3}, key="job")
    for known in (study, bl.Study.load("s", store)):
        assert known.suggest(2, {"age": 3}, key="job") == trials
        for n, age in ((2, 4), (1, 3), (3, 3)):
            message = "^key='job' started 2 trials before, in a request other than this one$"
            with pytest.raises(bl.errors.InvalidSetting, match=message):
                known.suggest(n, {"age": age}, key="job")
        # A report and a suggestion may have the same key.
        known.observe(0, 1.0, key="job")
    assert study.n_trials == 2 and study.trial(0).value == 1.0


# Leases.


@pytest.mark.parametrize("seconds", [0, 0.0, 2.5, 10**6])
def test_a_lease_ends_the_given_seconds_after_it_began(store, seconds):
    study = bl.Study("s", store, optimizer(), time=lambda: 1000.0)
    assert study.suggest(expires_after=seconds).expires_at == 1000.0 + seconds
    assert study.suggest().expires_at is None


@pytest.mark.parametrize("seconds", [-1e-9, float("nan"), float("inf"), 1.7e308, "3", True, [3.0]])
def test_unusable_leases_are_refused(store, seconds):
    study = bl.Study("s", store, optimizer())
    with pytest.raises(bl.errors.InvalidSetting, match="^expires_after=.* is not usable: pass seconds >= 0"):
        study.suggest(expires_after=seconds)
    assert study.n_trials == 0


# Optimizers and clocks.


def five_past():
    return 300.0


def test_a_study_uses_the_clock_of_its_optimizer(store):
    study = bl.Study("s", store, optimizer(clock="seconds", time=five_past))
    assert study.suggest(expires_after=10.0).expires_at == 310.0 and study.trial(0).suggested_at == 300.0
    again = pickle.loads(pickle.dumps(study))
    assert again.suggest(expires_after=20.0).expires_at == 320.0
    # The study uses a `time` function that is passed to it.
    other = bl.Study("s", store, optimizer(clock="seconds", time=five_past), time=lambda: 400.0)
    assert other.suggest(expires_after=10.0).expires_at == 410.0 and other.trial(2).suggested_at == 400.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimizer": "RandomSearch"}, r"^optimizer='RandomSearch' is not usable: .*; use bl.RandomSearch\(space\)$"),
        ({"optimizer": bl.RandomSearch}, r"^optimizer=<class .* is not usable: .*; use bl.RandomSearch\(space\)$"),
        ({"time": 3.0}, "^time=3.0 is not usable: pass a function that returns seconds$"),
        ({"optimizer": optimizer(), "time": "now"}, "^time='now' is not usable"),
    ],
    ids=str,
)
def test_other_arguments_are_refused(store, tmp_path, arguments, message):
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        bl.Study("s", store, **arguments)
    assert not list(tmp_path.iterdir())


def test_the_error_for_a_missing_study_names_the_store(store):
    bl.Study("other", store, optimizer())
    with pytest.raises(bl.errors.StoreError, match="^there is no study 's' in sqlite:///.*, which has .*bl.Study"):
        bl.Study("s", store)


def test_html_shows_the_name_as_text(store):
    shown = bl.Study("<b>&", store, optimizer())._repr_html_()
    assert shown.startswith("<p>Study &#x27;&lt;b&gt;&amp;&#x27;</p>") and "RandomSearch: 0 trials" in shown


# The next tests simulate two processes that create a study at the same time.


class Late(SqliteStore):
    """A store in which another process creates a study just after this process has looked for it."""

    create_other = None

    def header(self, name):
        found = super().header(name)
        if found is None and self.create_other is not None:
            other, self.create_other = self.create_other, None
            other()
        return found


def late(store, other):
    made = Late.from_location(store.removeprefix("sqlite://"))
    made.create_other = lambda: bl.Study("s", store, other).suggest(2)
    return made


def test_the_second_process_opens_the_study_of_the_first(store):
    mine = bl.Study("s", late(store, optimizer(seed=5)), optimizer(seed=None))
    assert mine.n_trials == 2 and mine.get_params()["seed"] == 5
    assert mine.trials == bl.Study.load("s", store).trials


@pytest.mark.parametrize(("given", "message"), [({"seed": 6}, "seed is 5 there and 6 here"), ({"n": 1}, "has trials")])
def test_a_second_process_with_another_optimizer_is_refused(store, given, message):
    opt = optimizer(seed=given.get("seed", 5))
    if "n" in given:
        opt.suggest()
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        bl.Study("s", late(store, optimizer(seed=5)), opt)
    assert bl.Study.load("s", store).n_trials == 2

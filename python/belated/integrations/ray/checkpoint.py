"""The file of a search, and Tune's table of trials in the same folder.

The file is JSON text. It contains the optimizer's definition and its log of events, and for each trial of Tune the
number of the optimizer's trial. Reading the file does not execute code.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ray import cloudpickle

from belated._core import InvalidSetting, without_time
from belated.study.definition import differences

FORMAT = "search of belated for Ray Tune"
VERSION = 6


class DamagedFile(InvalidSetting):
    """A file is incomplete, or was not written by belated."""


@dataclass(frozen=True)
class SavedSearch:
    """The content of the file of a search.

    `definition` is the optimizer's definition. `trials` maps the id of each trial of Tune to the number of the
    optimizer's trial.
    """

    metric: str
    mode: str
    definition: dict[str, Any]
    events: list[str]
    trials: dict[str, int]

    def text(self) -> str:
        """Return the content as the text of a file."""
        return json.dumps({"format": FORMAT, "version": VERSION} | vars(self))

    @classmethod
    def read(cls, path: str) -> "SavedSearch":
        """Read a file. Raise DamagedFile if belated did not write the file, and InvalidSetting if the version of the
        file is unknown."""
        try:
            data = json.loads(Path(path).read_bytes())
            if data["format"] != FORMAT:
                raise ValueError
            version = data["version"]
            saved = cls(**{field.name: data[field.name] for field in fields(cls)}) if version == VERSION else None
        except (ValueError, TypeError, KeyError, RecursionError):
            raise DamagedFile(
                f"{path} is not the file of a BelatedSearch, or is damaged: restore it with the searcher that saved it"
            ) from None
        if saved is None:
            raise InvalidSetting(
                f"{path} has version {version}, and this belated reads {VERSION}: use the release that wrote it"
            )
        return saved

    def begins_with(self, events: list[str]) -> bool:
        """Return whether the saved log begins with these events. The wall-clock times of events may differ."""
        saved = self.events[: len(events)]
        return [without_time(event) for event in saved] == [without_time(event) for event in events]

    def differences(self, other: "SavedSearch") -> list[str]:
        """Describe the differences between this search and another search."""
        pairs = [(name, getattr(self, name), getattr(other, name)) for name in ("metric", "mode")]
        found = [f"{name} is {there} there and {here} here" for name, there, here in pairs if there != here]
        return found + differences(self.definition, other.definition)


@dataclass(frozen=True)
class TuneTrial:
    """A trial in Tune's table. It has two configs: the nested config, and the flattened config that was suggested."""

    id: str
    status: str
    configs: tuple[Mapping[str, Any], ...]
    result: dict[str, Any]


def tune_trials(folder: str) -> list[TuneTrial] | None:
    """Find the table that Tune restores in an experiment's folder; return its trials, or None if there is no table."""
    # Choose the newest table, as Tune does. The file names contain the time at which a session began.
    paths = sorted(Path(folder).glob("experiment_state-*.json"))
    if not paths:
        return None
    # The folder is a local copy of the storage, but may contain tables that were never copied to the storage. Tune
    # chooses only among the tables in the storage.
    table = _trial_data(paths[-1])
    there = _names_in_storage(table)
    chosen = [path for path in paths if path.name in there][-1:]
    if chosen and chosen[0] != paths[-1]:
        table = _trial_data(chosen[0])
    return [_tune_trial(json.loads(state), json.loads(data)) for state, data in table]


def _trial_data(path: Path) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = json.loads(path.read_text(encoding="utf-8"))["trial_data"]
    return rows


def _names_in_storage(table: list[tuple[str, str]]) -> set[str]:
    """Return the names of the files in an experiment's storage, or an empty set if the storage is unreachable."""
    try:
        storage = dict(_decoded({"storage": json.loads(table[0][0])["storage"]}))["storage"]
        # The package of `FileSelector` is a dependency of Tune.
        from pyarrow.fs import FileSelector

        files = storage.storage_filesystem.get_file_info(FileSelector(storage.experiment_fs_path))
        return {file.base_name for file in files}
    except Exception:
        # The experiment may have been moved. Reading a pickle from another release may raise any error.
        return set()


def _tune_trial(state: dict[str, Any], data: dict[str, Any]) -> TuneTrial:
    configs = [dict(_decoded(state.get(name) or {})) for name in ("config", "evaluated_params")]
    return TuneTrial(state["trial_id"], state["status"], tuple(configs), dict(_decoded(data.get("last_result") or {})))


def _decoded(given: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (flattened name, value) for a dict in Tune's table, which stores values that are not JSON as pickles."""
    for key, value in given.items():
        if isinstance(value, dict) and value.get("_type") == "CLOUDPICKLE_FALLBACK":
            # Tune itself has already unpickled this file.
            yield path + key, cloudpickle.loads(bytes.fromhex(value["value"]))
        else:
            yield path + key, value
            if isinstance(value, dict):
                yield from _decoded(value, f"{path}{key}/")

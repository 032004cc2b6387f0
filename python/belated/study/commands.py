"""`belated study`: list, show, check, export, import and delete studies, start trials, report and withdraw results."""

from __future__ import annotations

import argparse
import io
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from belated._core import BelatedError
from belated.errors import InvalidValue, StoreError
from belated.optimizers.tables.files import check_packages, read_table
from belated.optimizers.tables.table import imported_pandas
from belated.optimizers.trial import front_text
from belated.short_repr import printable
from belated.space.arguments import number_in_text, whole_in_text
from belated.space.dimensions import choices_of
from belated.space.space import Space
from belated.store import Header, Record, Store, open_store
from belated.store.checksums import header, read_header, verified
from belated.study.exported import read_exported
from belated.study.study import Study, unless_deleted

DONE, FAILED = 0, 1

_TRIALS_SHOWN = 10

# The suffixes of tables.
_TABLES = (".csv", ".tsv", ".txt", ".xlsx")


def add_to(commands: Any) -> None:
    """Add ``study`` and its subcommands."""
    study = commands.add_parser("study", help="inspect a store of studies", description="Inspect a store of studies.")
    study.set_defaults(command=lambda arguments: study.print_help())
    actions = study.add_subparsers(title="commands", metavar="COMMAND")
    for name, command, text in (
        ("list", list_command, "the studies there are"),
        ("show", show_command, "settings, best and last trials of studies"),
        ("suggest", suggest_command, "start trials, and print them or write the worklist"),
        ("observe", observe_command, "report the value of a trial, the values of its outcomes, or a table of values"),
        ("worklist", worklist_command, "the trials that are out, since when, and when they are due"),
        ("report", report_command, "a page to print: what came, what is out, what changed, and all trials"),
        ("export", export_command, "all events, one line of JSON each; or a table of the trials"),
        (
            "import",
            import_command,
            "add studies that `export` wrote, all or none; or add the rows of a table to a study",
        ),
        ("delete", delete_command, "delete a study with all its trials"),
        ("withdraw", withdraw_command, "take back the values or failures of trials, all or none"),
        ("check", check_command, "verify that everything in the store is as it was written"),
    ):
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if name == "import":
            what = "what `export` printed; - for standard input; or a table (.csv, .xlsx), which needs NAME"
            action.add_argument("file", metavar="FILE", help=what)
        add_store(action)
        if name in ("show", "export", "import"):
            action.add_argument("name", metavar="NAME", nargs="?", help="which study (default: all)")
        if name in ("delete", "withdraw", "worklist", "report", "suggest", "observe"):
            action.add_argument("name", metavar="NAME", help="which study")
        if name in ("suggest", "observe", "withdraw"):
            action.add_argument("--by", metavar="NAME", help="who makes this report, to keep with it")
        if name == "withdraw":
            what = "the numbers of the trials"
            action.add_argument("numbers", metavar="NUMBER", type=_trial_number, nargs="+", help=what)
            action.add_argument("--reason", metavar="TEXT", help="why, to keep with the trials")
            action.add_argument("--outcome", metavar="OUTCOME", help="which outcome (default: all with a result)")
        if name == "suggest":
            action.add_argument("-n", metavar="N", type=_trial_number, default=1, help="how many trials (default: 1)")
            action.add_argument("--key", metavar="KEY", help="a name: a repeated request with this key starts nothing")
            what = "write the trials that are out to a new .csv, .xlsx, or .html to print"
            action.add_argument("--output", "--worklist", metavar="FILE", help=what)
        if name == "observe":
            what = "the number of the trial; or a worklist that was filled in (.csv, .xlsx)"
            action.add_argument("number", metavar="NUMBER|FILE", help=what)
            what = "the value; with outcomes, NAME=VALUE for each that has arrived"
            action.add_argument("values", metavar="VALUE", nargs="*", help=what)
            action.add_argument("--std", metavar="STD", type=float, help="the standard deviation of the noise")
            action.add_argument("--amend", action="store_true", help="replace an earlier value")
            action.add_argument("--value", metavar="COLUMN", help="the column of a table with the values")
            what = "many trials of the table were run at other points than suggested"
            action.add_argument("--moved", action="store_true", help=what)
            action.add_argument("--dry-run", action="store_true", help="print what a table would change")
            action.add_argument("--remark", metavar="TEXT", help="a remark about the trial")
        if name in ("observe", "import"):
            action.add_argument("--sheet", metavar="SHEET", help="the sheet of an Excel file")
            what = "the decimal separator of a table (, or .), if its numbers do not show it"
            action.add_argument("--decimal", metavar="MARK", choices=[",", "."], help=what)
        if name == "export":
            action.add_argument("--salvage", action="store_true", help="from a damaged file: all that is intact")
            action.add_argument("--table", metavar="FILE", help="write the trials of the study NAME to a .csv or .xlsx")
        if name == "import":
            action.add_argument("--value", metavar="COLUMN", help="the column of a table with the values")
            action.add_argument(
                "--missing",
                metavar="WHAT",
                choices=["raise", "skip", "pending"],
                default="raise",
                help="for rows without a value: raise (default), skip, or pending (add them as pending trials)",
            )
            action.add_argument("--skip", action="store_true", help="add the rows without errors, and list the others")
            action.add_argument("--new", action="store_true", help="leave out rows that equal earlier trials")
        if name == "worklist":
            what = "write to a .csv, .xlsx, or .html to print"
            action.add_argument("--output", "--worklist", metavar="FILE", help=what)
        if name == "report":
            action.add_argument("--output", metavar="FILE", required=True, help="the .html file to write")
        action.set_defaults(command=command)


def add_store(command: argparse.ArgumentParser) -> None:
    """Add the argument ``store``, a URL or a path."""
    command.add_argument(
        "store",
        metavar="STORE",
        type=lambda text: text if "://" in text else Path(text),
        help="sqlite:///file.db, the path of the file, or postgresql://user@host/database",
    )


def _loaded(arguments: argparse.Namespace) -> Study:
    """Return the study, for the author in the arguments if there is one."""
    study = Study.load(arguments.name, arguments.store)
    return study if arguments.by is None else study.as_user(arguments.by)


def suggest_command(arguments: argparse.Namespace) -> None:
    """Start trials of a study, and print them or write the trials that are out to a new file."""
    study, output = _loaded(arguments), arguments.output
    if output is not None:
        is_excel = _suffix(output, (".csv", ".xlsx", ".html")) == ".xlsx"
        (check_packages if is_excel else imported_pandas)("--output")
        # The file must be writable before trials start, and must not replace a sheet that was filled in.
        try:
            open(output, "xb").close()
        except FileExistsError:
            raise StoreError(f"{output} exists: pass the name of a new file (no trial was started)") from None
    try:
        trials = study.suggest(arguments.n, key=arguments.key)
    except BaseException:
        if output is not None:
            Path(output).unlink()
        raise
    for trial in trials:
        _print(trial)
    if output is not None:
        _write_worklist(study, output)


def observe_command(arguments: argparse.Namespace) -> int:
    """Report the value of a trial of a study, and print the trial; or report a table, and print a summary."""
    number = whole_in_text(arguments.number)
    if number is None:
        return _observe_table(arguments)
    if arguments.value is not None or arguments.moved or arguments.dry_run or arguments.sheet or arguments.decimal:
        raise InvalidValue("--value, --moved, --dry-run, --sheet and --decimal are for tables: pass a FILE")
    if not arguments.values:
        raise InvalidValue(f"trial {number} has no value: pass VALUE or, with outcomes, NAME=VALUE")
    study = _loaded(arguments)
    value: Any
    if study._problem.outcomes:
        pairs = [text.rpartition("=") for text in arguments.values]
        unnamed = [text for name, _, text in pairs if not name]
        if unnamed:
            raise InvalidValue(f"{unnamed[0]!r} lacks its outcome: pass NAME=VALUE (nothing was changed)")
        value = {name: _number(text) for name, _, text in pairs}
        if len(value) < len(pairs):
            raise InvalidValue("an outcome is named twice: pass NAME=VALUE once for each outcome (nothing was changed)")
    elif len(arguments.values) == 1:
        value = _number(arguments.values[0])
    else:
        raise InvalidValue(f"{len(arguments.values)} values for one trial: pass one (nothing was changed)")
    std = arguments.std
    if std is not None and isinstance(value, dict):
        std = dict.fromkeys(value, std)
    study.observe(number, value, std=std, amend=arguments.amend, check=True)
    if arguments.remark is not None:
        study.note(number, arguments.remark)
    _print(study.trial(number))
    return DONE


def _observe_table(arguments: argparse.Namespace) -> int:
    """Report the values of a table, and print a summary. Fail if cells were refused."""
    if Path(arguments.number).suffix.lower() not in _TABLES:
        raise InvalidValue(
            f"{arguments.number!r} is neither the number of a trial nor a file whose name ends with .csv or .xlsx"
        )
    if arguments.values or arguments.std is not None or arguments.remark is not None:
        raise InvalidValue(f"{arguments.number} is a table: pass values, stds and remarks as its columns")
    study = _loaded(arguments)
    table = read_table(arguments.number, arguments.decimal, arguments.sheet, text_columns(study))
    with warnings.catch_warnings():
        # The summary has the refused cells and the marked values.
        warnings.filterwarnings("ignore", message=".*(cells of the table were refused|was expected)")
        summary = study.observe(
            table, arguments.value, amend=arguments.amend, moved=arguments.moved, dry_run=arguments.dry_run
        )
    _print(summary)
    return FAILED if summary.refused else DONE


def _number(text: str) -> float:
    found = number_in_text(text)
    if found is None:
        raise InvalidValue(
            f"{text!r} is not a number: pass a number such as 0.81 or, with outcomes, NAME=0.81 (nothing was changed)"
        )
    return found


def withdraw_command(arguments: argparse.Namespace) -> None:
    """Take back the results of trials of a study, and print the trials."""
    study = _loaded(arguments)
    study.withdraw(arguments.numbers, reason=arguments.reason, outcome=arguments.outcome)
    for number in arguments.numbers:
        _print(study.trial(number))


def _trial_number(text: str) -> int:
    number = whole_in_text(text)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a trial: pass a whole number")
    return number


def _print(text: object) -> None:
    """Print a text without the control characters that names, choices and messages may contain, except line ends."""
    print("\n".join(map(printable, str(text).split("\n"))))


def _names(store: Store, name: str | None) -> list[str]:
    names = store.names()
    lost = None if names else store.lost_tables()
    if lost is not None:
        raise StoreError(f"store {store.url}: {lost}")
    if name is None:
        return names
    if name not in names:
        raise StoreError(f"there is no study {name!r} in {store.url}: it has {names}")
    return [name]


def _report(store: Store, describe: Callable[[Study], str]) -> int:
    """Print one line for each study: its description, or the error that prevents loading it."""
    code = DONE
    for name in _names(store, None):
        try:
            text = unless_deleted(store, name, lambda name: describe(Study.load(name, store)))
        except BelatedError as error:
            text, code = str(error), FAILED
        if text is not None:
            _print(f"{name}: {text}")
    return code


def list_command(arguments: argparse.Namespace) -> int:
    """Print one line for each study. For a damaged study, print the problem."""

    def facts(study: Study) -> str:
        counts = f"{study.n_trials} trials, {len(study.pending)} pending"
        front = study._numbers_in_front()
        best = f"best {study.best_value_}" if front is None else front_text(len(front))
        return f"{study._strategy_name}, {counts}, {best}"

    return _report(open_store(arguments.store), facts)


def show_command(arguments: argparse.Namespace) -> None:
    """Print the settings, the best trial and the last trials."""
    store = open_store(arguments.store)
    for name in _names(store, arguments.name):
        text = unless_deleted(store, name, lambda name: _shown(Study.load(name, store)))
        if text is not None:
            _print(text)


def _shown(study: Study) -> str:
    trials, front = study.trials, study._numbers_in_front()
    best = f"best: {study.best_trial_}" if front is None else f"{front_text(len(front))}: {front}"
    text = f"{study!r}\n{len(trials)} trials, {len(study.pending)} pending\n{best}"
    forecast = study.forecast()
    if forecast.n_pending:
        text += f"\nforecast: {forecast}"
    return "\n".join([text, *(f"  {trial}" for trial in trials[-_TRIALS_SHOWN:])])


def export_command(arguments: argparse.Namespace) -> int:
    """Print definitions and events as lines of JSON, in UTF-8."""
    if arguments.table is not None:
        if arguments.name is None or arguments.salvage:
            raise StoreError("--table writes the trials of one study: pass its NAME, without --salvage")
        is_csv = _suffix(arguments.table, (".csv", ".xlsx")) == ".csv"
        source = Study.load(arguments.name, arguments.store)
        (source.to_csv if is_csv else source.to_excel)(arguments.table)
        return DONE
    _as_utf8(sys.stdout)
    store = open_store(arguments.store)
    if not arguments.salvage:
        read = (unless_deleted(store, name, partial(_read, store)) for name in _names(store, arguments.name))
        exported = [each for each in read if each is not None]
        for found, records in exported:
            print(header_line(found, len(records), len(exported)))
            _print_events(found.name, found.id, records)
        return DONE
    headers, events = store.salvage()
    headers = _with_different_names(headers, events)
    known = {found.id: found.name for found in headers if arguments.name in (None, found.name)}
    wanted = [(study, record) for study, record in events if arguments.name is None or study in known]
    n_events = Counter(study for study, _ in wanted)
    for found in headers:
        if found.id in known:
            print(header_line(found, n_events[found.id], len(known)))
    for study, record in wanted:
        _print_events(known.get(study), study, [record])
    if sys.stderr is not None:
        print(f"belated: {len(headers)} studies and {len(events)} events are intact", file=sys.stderr)
    return DONE if known or wanted else FAILED


def _read(store: Store, name: str) -> tuple[Header, list[Record]] | None:
    found = store.header(name)
    if found is None:
        return None
    read_header(found)
    return found, verified(name, found.id, 0, store.events(found.id, 0))


def _with_different_names(headers: list[Header], events: list[tuple[int, Record]]) -> list[Header]:
    """Rename studies of the same name, except for the one that was written to last: the others were deleted."""
    written = {found.id: found.at for found in headers}
    for study, record in events:
        if study in written:
            written[study] = max(written[study], record.at)
    last = {found.name: found.id for found in sorted(headers, key=lambda found: written[found.id])}
    return [
        found
        if last[found.name] == found.id
        else header(found.id, f"{found.name} (deleted, {found.id})", read_header(found), found.at)
        for found in headers
    ]


def _as_utf8(stream: Any) -> None:
    """Make a standard stream read or write UTF-8 on any terminal."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="strict", newline="\n")


def header_line(found: Header, n_events: int, n_studies: int) -> str:
    """Return a line of JSON with a study's definition, the number of its events, and the number of exported studies."""
    facts = {"study": found.name, "id": found.id, "version": found.version, "at": found.at}
    return _line(facts, found.checksum, {"events": n_events, "studies": n_studies}, "definition", found.definition)


def event_line(name: str | None, study: int, record: Record) -> str:
    """Return a line of JSON with an event, whose stored text is unchanged. `name` is None if the definition is lost."""
    facts = {"study": name, "id": study, "seq": record.seq, "version": record.version, "key": record.key}
    return _line(facts | {"at": record.at}, record.checksum, {}, "event", record.body)


def _line(facts: dict[str, Any], checksum: bytes, counts: dict[str, int], what: str, text: str) -> str:
    return f'{json.dumps(facts | {"checksum": checksum.hex()} | counts)[:-1]}, "{what}": {text}}}'


def _print_events(name: str | None, study: int, records: Iterable[Record]) -> None:
    sys.stdout.writelines(f"{event_line(name, study, record)}\n" for record in records)


def _suffix(file: str, known: tuple[str, ...]) -> str:
    """Return the suffix of a file in lower case; raise an error if it is not among the known ones."""
    suffix = Path(file).suffix.lower()
    if suffix not in known:
        raise StoreError(f"{file}: pass a file whose name ends with {' or '.join(known)}")
    return suffix


def worklist_command(arguments: argparse.Namespace) -> None:
    """Print the trials that are out, or write them to a file."""
    study, output = Study.load(arguments.name, arguments.store), arguments.output
    if output is None:
        table = study.worklist().drop(columns=["study", "study_id", "as_of", "remarks"])
        table = table.drop(columns=[] if study._problem.outcomes else ["value"])
        for name in table.columns:
            if any(isinstance(cell, str) for cell in table[name]):
                table[name] = [printable(cell) if isinstance(cell, str) else cell for cell in table[name]]
        table.columns = list(map(printable, table.columns))
        _print(table.to_string(index=False) if len(table) else "no trials are out")
        return
    _write_worklist(study, output)


def report_command(arguments: argparse.Namespace) -> None:
    """Write the report of a study to a file."""
    _suffix(arguments.output, (".html",))
    Study.load(arguments.name, arguments.store).report_html(arguments.output)


def _write_worklist(study: Study, output: str) -> None:
    if _suffix(output, (".csv", ".xlsx", ".html")) == ".html":
        study.worklist_html(output)
    else:
        study.worklist(output)


def text_columns(study: Study) -> list[str]:
    """Return the columns of a table whose cells are choices."""
    spaces = [each for each in (study.domain, study.context_space) if isinstance(each, Space)]
    names = [
        name
        for space in spaces
        for name in space
        if any(isinstance(each, str) for each in choices_of(space[name]) or ())
    ]
    return [f"{prefix}{name}" for name in names for prefix in ("", "params_", "context_")]


def _import_table(arguments: argparse.Namespace) -> int:
    """Add the rows of a table to a study."""
    if arguments.name is None:
        raise StoreError(f"{arguments.file} is a table: pass the NAME of the study to which its rows are added")
    study = Study.load(arguments.name, arguments.store)
    added = study.add(
        read_table(arguments.file, arguments.decimal, arguments.sheet, text_columns(study)),
        value=arguments.value,
        missing=arguments.missing,
        on_error="skip" if arguments.skip else "raise",
        duplicates="skip" if arguments.new else "warn",
    )
    trials, skipped = added if arguments.skip else (added, [])
    for each in skipped:
        _print(f"line {each.row}, column {each.column!r}: {each.reason}")
    _print(f"{arguments.name}: {len(trials)} trials added" + (f", {len(skipped)} rows not added" if skipped else ""))
    return FAILED if skipped else DONE


def import_command(arguments: argparse.Namespace) -> int:
    """Copy the studies of an export, with unchanged events, into a store. Fail if a study of the same name exists."""
    if Path(arguments.file).suffix.lower() in _TABLES:
        return _import_table(arguments)
    store, reads_stdin = open_store(arguments.store), arguments.file == "-"
    if reads_stdin:
        if sys.stdin is None:
            raise StoreError("standard input is closed: pass a file, or redirect standard input")
        _as_utf8(sys.stdin)
    with nullcontext(sys.stdin) if reads_stdin else open(arguments.file, encoding="utf-8", newline="\n") as lines:
        try:
            studies = read_exported(lines, arguments.name, store)
        except UnicodeDecodeError as error:
            raise StoreError(f"{arguments.file} is not text in UTF-8: {error}") from None
        except StoreError as error:
            raise StoreError(f"{'standard input' if reads_stdin else arguments.file}: {error}") from error
    taken = store.create_all(studies)
    if taken:
        raise StoreError(
            f"{store.url} has studies of the names {taken} already, so that nothing was imported: import into another "
            "store, or a study with another name"
        )
    for imported, records in studies:
        _print(f"{imported.name}: imported, {len(records)} events")
    return DONE


def delete_command(arguments: argparse.Namespace) -> None:
    """Delete a study."""
    Study.delete(arguments.name, arguments.store)
    _print(f"{arguments.name}: deleted")


def check_command(arguments: argparse.Namespace) -> int:
    """Check that the store is intact, every checksum is right, all events are there, and every log is valid."""
    store = open_store(arguments.store)
    store.check()
    return _report(store, lambda study: f"ok, {study._log.n_events()} events")

"""Files of what a fit is given beside the answers: known truths, history, saved fit (also written) and costs.

Each is read once into a value with its digest. A history or saved fit that crowdveil wrote names the inputs it was made
from; the result depends on these, and costs their guarantees.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.answers import datasets
from crowdveil.answers.facts.inputs import Input, derived_input, inputs_of_json
from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.ingest.column_readers import delimiter_and_roles, match_columns, read_csv_by_role
from crowdveil.answers.ingest.csv_files import content_digest, text_source
from crowdveil.answers.ingest.gold_files import load_gold_and_seed
from crowdveil.answers.read_options import Kind
from crowdveil.answers.sources.location import DATASET
from crowdveil.channels.alphabet import Alphabet
from crowdveil.em.saved_fit import SavedFit, is_saved_fit, saved_fit_damage_error
from crowdveil.em.worker_history import WorkerHistory
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.atomic_write import Outputs
from crowdveil.files.filesystem import open_regular
from crowdveil.files.output_record import OutputEntry
from crowdveil.hints import command_advice
from crowdveil.inference.given import History, KnownTruths, Start, as_known_truths
from crowdveil.storage.answers import PROBABILITY, read_name_column
from crowdveil.storage.estimate_files import ESTIMATE_FILES, INFER_AGAIN, entry_of_unchanged_file, estimate_names

COST_COLUMNS = ("truth", "decision", "cost")


@dataclass(frozen=True, kw_only=True, eq=False)
class Costs:
    """Costs of decisions.

    Attributes:
        table: cost of each decision, indexed [truth, decision] by label.
        inputs: the file.
    """

    table: NDArray[np.float64]
    inputs: tuple[Input, ...]


def read_known_truths(source: str, kind: Kind, *, public: bool = False) -> KnownTruths:
    """Return known truths by task name from a table of any form, or from `dataset:NAME`.

    Args:
        source: name of the file or data set.
        kind: whether the truths are labels or numbers.
        public: whether they are stated to be independent of all answers.

    Raises:
        ReportsError: a damaged file.
        SettingsError: no such data set.
    """
    if source.startswith(DATASET):
        found = as_known_truths(datasets.load(source.removeprefix(DATASET)).gold, public=public)
        assert found is not None
        return replace(found, source=source)
    drawn = load_gold_and_seed(source, kind=kind)
    own = Input(role="gold", sha256=content_digest(Path(source)), public=public)
    return KnownTruths(**drawn._asdict(), source=source, inputs=(own,))


def read_saved_fit(path: Path) -> Start:
    """Return the saved fit in a file.

    Raises:
        ReportsError: no such file, another format, or damage.
    """
    source = str(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        hint = command_advice("{save_fit} writes one.", "SavedFit.to_bytes returns the contents of one.")
        raise ReportsError("a saved fit must exist", source=source, hint=hint) from error
    except OSError as error:
        raise saved_fit_damage_error(source, str(error)[:200]) from error
    fit, sha256 = SavedFit.from_bytes(data, source=source), hashlib.sha256(data).hexdigest()
    return Start(fit=fit, inputs=(derived_input("start_from", sha256, fit.inputs),))


def saved_fit_outputs(path: Path) -> Outputs:
    """Return the one output file of a saved fit, which replaces only another saved fit."""
    return Outputs(folder=path.parent, names=(path.name,), kind="saved fit", recognize=_is_saved_fit_file)


def _is_saved_fit_file(path: Path) -> bool:
    try:
        with open_regular(path) as stream:
            return is_saved_fit(stream)
    except OSError:
        return False


def read_history(path: Path) -> History:
    """Return the worker history in a table of any form, or in a folder that `infer` wrote.

    The labels are those of the probabilities in the truths of the same folder and form, if they are there.

    Raises:
        ReportsError: a damaged file, or one without a quality of workers.
    """
    workers, truths, recorded = _worker_and_truth_files_of_history(path)
    try:
        found = WorkerHistory.from_frame(_history_table(workers), labels=_labels_of_probability_columns(truths))
    except ReportsError as error:
        if error.source == str(workers):
            raise
        raise error.changed(source=str(workers)) from None
    files = [file for file in (workers, truths) if file is not None]
    own = tuple(derived_input("history", content_digest(file), recorded) for file in files)
    tasks = () if truths is None else tuple(read_name_column(truths, "task"))
    return History(workers=found, tasks=tasks, source=str(path), inputs=own)


def _worker_and_truth_files_of_history(path: Path) -> tuple[Path, Path | None, tuple[Input, ...]]:
    """Return the file of workers, that of the truths with it, and the inputs that their record names.

    Files of an estimate must be as its record has them.

    Raises:
        ReportsError: a folder without an estimate that can be a history, or a file that was changed.
    """
    folder = path if path.is_dir() else path.parent
    names = estimate_names(folder)
    if names is not None and path in (folder, folder / names[1]):
        truths, workers = (folder / name for name in names)
        entry, _ = entry_of_unchanged_file(workers), entry_of_unchanged_file(truths)
        return workers, truths, recorded_inputs(entry, folder)
    if path.is_dir():
        hint = "Give a folder that infer wrote, or a file."
        forms = ", .".join(ESTIMATE_FILES)
        raise ReportsError(f"a folder with a history must hold workers.{forms}", source=str(path), hint=hint)
    beside = [folder / truths for truths, workers in ESTIMATE_FILES.values() if path.name == workers]
    return path, next((file for file in beside if file.exists()), None), ()


def recorded_inputs(entry: OutputEntry, folder: Path) -> tuple[Input, ...]:
    """Return the inputs that a record names for a file; empty if it names none.

    Raises:
        SettingsError: they are damaged.
    """
    try:
        return inputs_of_json(entry.inputs) if entry.inputs else ()
    except (ValueError, TypeError, SettingsError) as error:
        rule = "the record of a folder must say what its truths depend on"
        raise SettingsError(rule, value=str(folder), hint=INFER_AGAIN) from error


def _history_table(path: Path) -> pa.Table:
    """Return a table of workers with names of columns in lower case."""
    table = _table_of_workers(path)
    return table.rename_columns([name.lower() for name in table.column_names])


def read_worker_table(path: Path) -> pa.Table:
    """Return a table of any form with the column "worker", such as groups or weights; other names are kept.

    Raises:
        ReportsError: a damaged file, no column of workers, or two columns of one name.
    """
    table = _table_of_workers(path)
    return table.rename_columns([name.lower() if name.lower() == "worker" else name for name in table.column_names])


def read_totals(path: Path) -> dict[str, str]:
    """Return the text of the total of each group, of a CSV file with the columns group and total.

    Raises:
        ReportsError: a damaged file, a missing column, or a group twice.
    """
    _, found = read_csv_by_role(path, {name: (name,) for name in ("group", "total")})
    groups, totals = (found[name].cells.tolist() for name in ("group", "total"))
    twice = [group for group, count in Counter(groups).items() if count > 1]
    if twice:
        hint = "Keep one of its rows."
        raise ReportsError("a group has one total", source=text_source(path), examples=twice[0], hint=hint)
    return dict(zip(groups, totals, strict=True))


def _table_of_workers(path: Path) -> pa.Table:
    """Return a table of any form, that of text and JSON as text, without spaces around names of columns."""
    file = ExportFile(path, str(path))
    if file.form == "text":
        delimiter, columns = delimiter_and_roles(path, _all_columns_of_workers, headers=file.sniffed.headers)
        file = file.with_delimiter(delimiter)
    else:
        columns = _all_columns_of_workers(file.columns, file.name)
    table = file.table_of_roles(columns)
    return table.rename_columns([name.strip() for name in table.column_names])


def _all_columns_of_workers(found: Sequence[str], source: str) -> dict[str, str]:
    """Return all columns of a table of workers; one without workers, or with a repeated name, is refused."""
    repeated_names = [f"{count} columns {name!r}" for name, count in Counter(found).items() if count > 1]
    if repeated_names:
        raise ReportsError(
            "no two columns of a table of workers may have the same name",
            source=source,
            examples=", ".join(repeated_names),
            hint="Rename or remove one of them.",
        )
    match_columns([name.strip().lower() for name in found], {"worker": ("worker",)}, source)
    return {name: name for name in found}


def _labels_of_probability_columns(truths: Path | None) -> tuple[str, ...] | None:
    """Return the labels of truths; None without their probabilities."""
    if truths is None:
        return None
    header = ExportFile(truths, str(truths)).columns
    return tuple(name.removeprefix(PROBABILITY) for name in header if name.startswith(PROBABILITY)) or None


def read_costs(path: Path, alphabet: Alphabet) -> Costs:
    """Return the costs of a CSV file with the columns truth, decision and cost.

    A pair of equal labels that is not listed costs 0.

    Raises:
        ReportsError: an unknown label, a repeated or missing pair, or a cost that is no finite number from 0.
    """
    source = text_source(Path(path))
    _, found = read_csv_by_role(path, {name: (name,) for name in COST_COLUMNS})
    columns = [found[name].cells.tolist() for name in COST_COLUMNS]
    costs: dict[tuple[str, str], float] = {}
    for number, (truth, decision, text) in enumerate(zip(*columns, strict=True), 1):
        cost = _number_or_nan(text)
        for wrong, rule in (
            ({truth, decision} - set(alphabet.names), f"labels of costs must be among {alphabet.names}"),
            ((truth, decision) in costs, "a pair of truth and decision has one cost"),
            (not 0 <= cost < np.inf, "a cost must be a finite number from 0"),
        ):
            if wrong:
                raise ReportsError(rule, source=source, rows=(number,), examples=f"{truth}, {decision}, {text}")
        costs[truth, decision] = cost
    missing = [(z, d) for z in alphabet.names for d in alphabet.names if z != d and (z, d) not in costs]
    if missing:
        raise ReportsError(
            "every pair of different labels needs a cost",
            source=source,
            examples=f"truth, decision: {missing[0]}",
            hint="Add the row; a right decision costs nothing and needs none.",
        )
    table = np.array([[costs.get((truth, decision), 0.0) for decision in alphabet.names] for truth in alphabet.names])
    own = Input(role="costs", sha256=content_digest(path), public=True)
    return Costs(table=table, inputs=(own,))


def _number_or_nan(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")

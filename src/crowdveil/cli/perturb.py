"""`crowdveil perturb`: what devices would have sent for answers that someone already holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import account_data, account_rows, progress_bar, show, warn
from crowdveil.cli.options import alphabet_options, duplicates_option, json_option, mechanism_options

if TYPE_CHECKING:
    from crowdveil.ingest.coding import Duplicates
    from crowdveil.labels import Alphabet
    from crowdveil.reports import Reports
    from crowdveil.storage.report_files import Form
    from crowdveil.workflow import Collection, MechanismWanted, Setup

MANY_ROWS = 10_000_000
NO_PRIVACY = "these reports follow from the seed: a simulation, which carries no privacy"


HELP = """Write what devices would have sent for the answers in a file.

ANSWERS is a CSV (also gzipped) or Parquet file with the columns task, worker, and label (or value, for numbers); or
dataset:NAME. Every worker's answers are perturbed as that worker's device would have done, by default with secure
randomness.

Writes reports.csv (the reports that say something; how many say nothing follows from the lists of tasks and workers),
certificate.json (the channel that every cell went through, with its epsilon per cell) and crowd.json (tasks, workers,
mechanism, guarantee). Where cells are not perturbed one by one there is no certificate; matrix-factorization writes
sums.json in place of reports.csv.

Epsilon is the privacy loss of one cell: one worker's answer to one task. What it adds up to for a whole worker is
printed beside it. With protected participation (the default) "no answer" is hidden like an answer: on every task of the
campaign, or, with --assignment, on the tasks that a worker was asked, which is far cheaper."""


@click.command(help=HELP, short_help="Write what devices would have sent for the answers in a file.")
@click.argument("answers")
@mechanism_options
@alphabet_options
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Reproducible simulation, WITHOUT ANY PRIVACY.")
@duplicates_option(None)
@click.option("--tasks", type=click.Path(path_type=Path), metavar="FILE", help="CSV file of all tasks (column task).")
@click.option(
    "--workers", type=click.Path(path_type=Path), metavar="FILE", help="CSV file of all workers (column worker)."
)
@click.option(
    "--assignment",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="CSV file of the cells that were asked (columns task, worker): only these report. See crowdveil assign.",
)
@click.option(
    "--channels",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="CSV file of settings that differ: worker (or task), epsilon (a number, or unprotected), cuts (A|B).",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Where files are written.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "blocks"]),
    default="csv",
    show_default=True,
    help="Of the reports; blocks are opened by infer without being read.",
)
@json_option
def perturb(
    answers: str,
    wanted: MechanismWanted,
    alphabet: Alphabet | None,
    seed: int | None,
    duplicates: Duplicates | None,
    tasks: Path | None,
    workers: Path | None,
    assignment: Path | None,
    channels: Path | None,
    out: Path,
    form: Form,
    as_json: bool,
) -> None:
    """Read, perturb, write, print; see `HELP`."""
    from crowdveil import workflow

    read = workflow.read_answers(answers, alphabet=alphabet, duplicates=duplicates, tasks=tasks, workers=workers)
    setup = workflow.set_up(wanted, read.alphabet, read.answers, channels=channels, assignment=assignment)
    outputs = [out / name for name in workflow.collection_files(setup, form)]
    workflow.refuse_overwriting(outputs, [answers, tasks, workers, assignment, channels])
    warnings = [*read.notes, *_cautions(read.answers, setup, listed=None not in (tasks, workers))]
    with workflow.room_for(out, workflow.rows_expected(read.answers, setup)) as folder:
        with progress_bar("perturbing") as bar:
            collection = workflow.collect(read.answers, setup, seed=seed, progress=bar, folder=folder)
        workflow.write_collection(out, collection, form)
    data = _summary(collection) | {"files": [str(path) for path in outputs], "warnings": warnings}
    show(data, _rows(data), as_json=as_json)


def _cautions(answers: Reports, setup: Setup, *, listed: bool) -> list[str]:
    """Say what the request implies; a very large file is announced before it is made."""
    from crowdveil.workflow import rows_expected

    cautions = []
    if setup.mechanism.participation == "protected" and not listed and setup.assignment is None:
        cautions.append("Tasks and workers are those in the file: who answered nothing is visibly absent from it.")
    rows = rows_expected(answers, setup)
    if rows > MANY_ROWS:
        cautions.append(f"About {rows:,.0f} rows: with public participation or a larger epsilon there are fewer.")
        warn(cautions[-1])
    return cautions


def _summary(collection: Collection) -> dict[str, Any]:
    from crowdveil.workflow import parameters

    answers, mechanism, alphabet = collection.answers, collection.mechanism, collection.answers.alphabet
    return {
        "mechanism": mechanism.name,
        "description": collection.description,
        "parameters": parameters(mechanism),
        "participation": mechanism.participation,
        "simulation": collection.seed is not None,
        "seed": collection.seed,
        "privacy": collection.promise if collection.seed is None else f"none: {NO_PRIVACY}",
        "accounts": account_data(collection.accounts),
        "labels": [] if alphabet is None else list(alphabet.names),
        "tasks": len(answers.tasks),
        "workers": len(answers.workers),
        "answers": len(answers),
        "assigned": None if collection.setup.assignment is None else len(collection.setup.assignment),
        "reports": collection.size,
        "certificate_sha256": collection.crowd["certificate_sha256"],
    }


def _rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    simulation = [("SIMULATION", NO_PRIVACY)] if data["simulation"] else []
    sealed = data["certificate_sha256"] or "none: the mechanism has no per-cell channel; its guarantee is in crowd.json"
    return [
        *simulation,
        ("mechanism", data["description"]),
        *account_rows(data["accounts"]),
        ("answers in", f"{data['answers']:,} from {data['workers']:,} workers on {data['tasks']:,} tasks"),
        *([] if data["assigned"] is None else [("cells asked", f"{data['assigned']:,}: only these report")]),
        ("reports out", f"{data['reports']:,}"),
        ("certificate", sealed),
        *[("warning", text) for text in data["warnings"]],
        *[("written", path) for path in data["files"]],
    ]

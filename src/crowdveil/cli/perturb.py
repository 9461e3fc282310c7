"""`crowdveil perturb`: what devices would have sent for answers that someone already holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import account_data, account_rows, progress_bar, replaced_rows, show, warn
from crowdveil.cli.options import (
    PATH,
    alphabet_options,
    duplicates_option,
    json_option,
    mechanism_options,
    merge_labels_option,
    replace_option,
)

if TYPE_CHECKING:
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.data.ingest.validation import Duplicates
    from crowdveil.data.reports import Reports
    from crowdveil.workflow import AnswersRead, Collection, MechanismWanted, Setup
    from crowdveil.workflow.export import Form

MANY_ROWS = 10_000_000

HELP = """Write what devices would have sent for the answers in a file.

ANSWERS is a CSV (also gzipped) or Parquet file with the columns task, worker, and label (or value, for numbers); or
dataset:NAME. Every worker's answers are perturbed as that worker's device would have done, by default with secure
randomness.

Writes reports.csv (the reports that say something; how many say nothing follows from the lists of tasks and workers),
certificate.json (the channel that every cell went through, with its epsilon per cell) and crowd.json (tasks, workers,
mechanism, guarantee). Where cells are not perturbed one by one there is no certificate; matrix-factorization writes
sums.json in place of reports.csv.

Labels, tasks and workers must be known before anyone answers: --labels or --scale, --tasks and --workers (or
--assignment, which lists both). A list that is taken from the answers shows who answered: such a run is refused, unless
--lists-from-answers asks for it, and then promises nothing. With --participation public only the labels must be given.

Epsilon is the privacy loss of one cell: one worker's answer to one task. What it adds up to for a whole worker is
printed beside it. With protected participation (the default) "no answer" is hidden like an answer: on every task of the
campaign, or, with --assignment, on the tasks that a worker was asked, which is far cheaper."""


@click.command(help=HELP, short_help="Write what devices would have sent for the answers in a file.")
@click.argument("answers")
@mechanism_options
@alphabet_options
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Reproducible simulation, WITHOUT ANY PRIVACY.")
@duplicates_option(None)
@merge_labels_option
@click.option(
    "--lists-from-answers",
    is_flag=True,
    help="Take the lists that are not given from the answers: to look only, WITHOUT ANY PRIVACY.",
)
@click.option("--tasks", type=PATH, metavar="FILE", help="CSV file of all tasks (column task).")
@click.option("--workers", type=PATH, metavar="FILE", help="CSV file of all workers (column worker).")
@click.option(
    "--assignment",
    type=PATH,
    metavar="FILE",
    help="CSV file of the cells that were asked (columns task, worker): only these report, and it lists tasks and "
    "workers. See crowdveil assign.",
)
@click.option(
    "--channels",
    type=PATH,
    metavar="FILE",
    help="CSV file of settings that differ: worker (or task), epsilon (a number, or unprotected), cuts (A|B).",
)
@click.option("--out", type=PATH, required=True, metavar="DIR", help="Where files are written.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "blocks"]),
    default="csv",
    show_default=True,
    help="Of the reports; blocks are opened by infer without being read.",
)
@replace_option
@json_option
def perturb(
    answers: str,
    wanted: MechanismWanted,
    alphabet: Alphabet | None,
    seed: int | None,
    duplicates: Duplicates | None,
    merge_labels: bool,
    lists_from_answers: bool,
    tasks: Path | None,
    workers: Path | None,
    assignment: Path | None,
    channels: Path | None,
    out: Path,
    form: Form,
    replace: bool,
    as_json: bool,
) -> None:
    """Read, perturb, write, print; see `HELP`."""
    from crowdveil import workflow

    lists = workflow.read_lists(tasks=tasks, workers=workers, assignment=assignment)
    read = workflow.read_answers(
        answers,
        alphabet=alphabet,
        duplicates=duplicates,
        merge_labels=merge_labels,
        tasks=lists.tasks,
        workers=lists.workers,
    )
    setup = workflow.set_up(wanted, read.alphabet, read.answers, channels=channels, assignment=lists.assignment)
    outputs = workflow.collection_outputs(out, workflow.collection_files(setup, form), replace=replace)
    replaced = outputs.check(inputs=[answers, tasks, workers, assignment, channels, wanted.expected.prior])
    announced = _many_rows(read.answers, setup)
    with workflow.room_for(out, workflow.rows_foreseen(read.answers, setup)) as folder:
        with progress_bar("perturbing") as bar:
            collection = workflow.collect(
                read.answers, setup, seed=seed, lists_from_answers=lists_from_answers, progress=bar, folder=folder
            )
        workflow.write_collection(out, collection, form, replace=replace)
    warnings = [*_notes(read, collection), *announced]
    data = _summary(collection) | {"files": list(map(str, outputs.paths)), "replaced": list(map(str, replaced))}
    data["warnings"] = warnings
    show(data, _rows(data), as_json=as_json)


def _notes(read: AnswersRead, collection: Collection) -> list[str]:
    """Return how answers were changed: by which rules, or, where nothing is promised about them, how often."""
    from crowdveil.data.public_lists import not_public_text

    if not collection.caveat:
        return list(read.rules)
    simulated = collection.seed is not None and collection.missing_lists
    lists = [f"{not_public_text(collection.missing_lists).capitalize()}."] if simulated else []
    return [*lists, *read.counts]


def _many_rows(answers: Reports, setup: Setup) -> list[str]:
    """Announce a very large file before it is made."""
    from crowdveil.workflow import rows_foreseen

    rows = rows_foreseen(answers, setup)
    if rows <= MANY_ROWS:
        return []
    caution = f"About {rows:,.0f} rows or more: with public participation or a larger epsilon there are fewer."
    warn(caution)
    return [caution]


def _summary(collection: Collection) -> dict[str, Any]:
    from crowdveil.workflow import HOLDER, parameters

    answers, mechanism, alphabet = collection.answers, collection.mechanism, collection.answers.alphabet
    public = mechanism.participation == "public"
    return {
        "mechanism": mechanism.name,
        "description": collection.description,
        "parameters": parameters(mechanism) if collection.accounts else {},
        "participation": mechanism.participation,
        "simulation": collection.seed is not None,
        "seed": collection.seed,
        "lists_from_answers": list(collection.missing_lists),
        "privacy": f"none: {collection.caveat}" if collection.caveat else collection.promise,
        "holder": HOLDER,
        "accounts": account_data(collection.accounts),
        "labels": [] if alphabet is None else list(alphabet.names),
        "tasks": len(answers.tasks),
        "workers": len(answers.workers),
        "answers": len(answers) if public else None,
        "assigned": None if collection.setup.assignment is None else len(collection.setup.assignment),
        "reports": collection.size,
        "certificate_sha256": collection.crowd["certificate_sha256"],
    }


def _rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    caveat = data["privacy"].removeprefix("none: ")
    unprotected = caveat != data["privacy"]
    marked = [("SIMULATION" if data["simulation"] else "NO PRIVACY", caveat)] if unprotected else []
    sealed = data["certificate_sha256"] or "none: the mechanism has no per-cell channel; its guarantee is in crowd.json"
    hidden = data["answers"] is None
    answered = "not counted, because participation is protected;" if hidden else f"{data['answers']:,}"
    return [
        *marked,
        ("mechanism", data["description"]),
        *account_rows(data["accounts"]),
        ("answers in", f"{answered} from {data['workers']:,} workers on {data['tasks']:,} tasks"),
        *([] if data["assigned"] is None else [("cells asked", f"{data['assigned']:,}: only these report")]),
        ("reports out", f"{data['reports']:,}"),
        ("holder", data["holder"]),
        ("certificate", sealed),
        *[("warning", text) for text in data["warnings"]],
        *replaced_rows(data["replaced"]),
        *[("written", path) for path in data["files"]],
    ]

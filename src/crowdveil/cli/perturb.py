"""`crowdveil perturb`: reports that devices would send for the answers in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.channels.rounding import format_bound
from crowdveil.cli.data.sources import SOURCE_TEXT, column_options, layout_of, open_sources, sources_argument
from crowdveil.cli.display import account_rows, composition_rows, print_written, warning_rows, worker_loss
from crowdveil.cli.options import (
    DELTA,
    FILE_PATH,
    FOLDER_PATH,
    SEED,
    MechanismOptions,
    alphabet_of,
    alphabet_options,
    duplicates_option,
    flag_of,
    mechanism_options,
    mechanism_settings,
    merge_labels_option,
    option_group,
    replace_option,
    stated_options,
)
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import crowd_text

if TYPE_CHECKING:
    from crowdveil.answers.assignment import Assignment
    from crowdveil.answers.ingest.column_checks import Duplicates
    from crowdveil.answers.sources.location import Layout
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.design.mechanism_from_settings import MechanismSettings
    from crowdveil.simulate.channel_assignment import ChannelRows
    from crowdveil.simulate.perturbed_collection import PerturbedCollection
    from crowdveil.storage.answers import AnswersRead
    from crowdveil.storage.write_collection import Form

SHOWN_DIGITS = 4
"""Significant digits of the epsilon that a simulation does not give."""

EXAMPLE = """crowdveil perturb answers.csv --mechanism randomized-response
          --epsilon 3 --labels no,yes --tasks tasks.csv
          --workers workers.csv --out sent"""


list_options = option_group(
    click.option("--tasks", type=FILE_PATH, help="CSV file of all tasks (column task)."),
    click.option("--workers", type=FILE_PATH, help="CSV file of all workers (column worker)."),
    click.option(
        "--assignment",
        type=FILE_PATH,
        help="CSV file of the assigned cells (columns task, worker); only these report. See crowdveil data assign.",
    ),
    click.option(
        "--channels",
        type=FILE_PATH,
        help="CSV file of settings by worker (or task): epsilon (a number, or unprotected), cuts (A|B).",
    ),
    click.option("--lists-from-answers", is_flag=True, help="Take missing lists from the answers: no privacy."),
    heading="Public lists",
)
comparison_options = option_group(
    click.option(
        "--comparisons",
        is_flag=True,
        help="The answers are comparisons (left, right, worker, label), --tasks is a list of pairs (left, right), and "
        "--assignment has left, right, worker.",
    ),
    click.option(
        "--ties",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="T",
        help="designed, with --comparisons: expected share of ties. [default: 0.175]",
    ),
    heading="Comparisons",
)
OF_COMPARISONS = ("randomized-response", "designed")
"""Mechanisms of comparisons: with a symbol for each answer, and with two symbols or three."""
NOT_OF_COMPARISONS = frozenset(("labels", "scale", "ordered", "merge_labels", "channels", "prior", "ability", "sigmas"))
"""Options that do not go with --comparisons."""


@dataclass(frozen=True, kw_only=True)
class PerturbOptions:
    """Options of `perturb`, by argument.

    Attributes:
        answers, layout, alphabet, duplicates, merge_labels: sources, and how they are read.
        requested: mechanism, with its settings or a budget.
        delta: at which a budget holds.
        tasks, workers, assignment, channels: files of public lists, and of settings by worker or task.
        lists_from_answers: whether missing lists are taken from the answers.
        comparisons, ties: whether the answers are comparisons of two items, and their expected share of ties.
        seed: of a simulation; None for secure randomness.
        out, form, replace: folder of the collection, format of its reports, and whether it replaces another one.
    """

    answers: tuple[str, ...]
    layout: Layout
    alphabet: Alphabet | None
    duplicates: Duplicates | None
    merge_labels: bool
    requested: MechanismSettings
    delta: float | None
    tasks: Path | None
    workers: Path | None
    assignment: Path | None
    channels: Path | None
    lists_from_answers: bool
    comparisons: bool
    ties: float | None
    seed: int | None
    out: Path
    form: Form
    replace: bool


@click.command(
    cls=Verb,
    values={
        "own": MechanismOptions,
        "requested": mechanism_settings,
        "alphabet": alphabet_of,
        "layout": layout_of,
        "asked": PerturbOptions,
    },
    example=EXAMPLE,
    details=f"ANSWERS: {SOURCE_TEXT}.",
    main_options=("epsilon", "budget", "labels", "scale", "tasks", "workers", "lists_from_answers", "seed"),
    short_help="Randomize the answers in a file as devices would.",
)
@sources_argument("answers")
@mechanism_options
@alphabet_options
@duplicates_option(None)
@merge_labels_option
@column_options
@list_options
@comparison_options
@click.option("--delta", type=DELTA, help="With --budget: the budget holds at this delta, such as 1e-6.")
@click.option("--seed", type=SEED, help="Seed. Simulation only: no privacy.")
@click.option("--out", type=FOLDER_PATH, required=True, help="Output folder.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "blocks"]),
    default="csv",
    help="Format of the reports; infer opens blocks without parsing.",
)
@replace_option
def perturb(asked: PerturbOptions) -> None:
    """Write the reports that devices would send for the answers in a file.

    ANSWERS are files with the columns task, worker, and label (or value), exports of labelling tools, or dataset:NAME.
    "No answer" is hidden too, except with --participation public. Lists must be public.

    \f
    Each worker's answers are randomized as on the worker's device, with secure randomness.

    Writes reports.csv (reports other than "no answer", whose number follows from the lists), certificate.json (the
    channel, with the epsilon of a single answer) and crowd.json (tasks, workers, mechanism, guarantee).
    matrix-factorization writes sums.json instead of reports.csv, and no certificate.

    Labels, tasks and workers must be known before the campaign: --labels or --scale, --tasks and --workers (or
    --assignment, which lists both). The answers must then be a table with a header and plain columns: import an export
    first. Lists taken from the answers show who answered, so such a run is refused without --lists-from-answers. With
    --participation public only the labels must be given.

    Epsilon is the privacy loss of a single answer (a cell: one worker's answer to one task); the total of a worker is
    printed too. --budget states that total instead. It is divided equally among all tasks, or with --assignment among
    the largest number of tasks assigned to one worker. With protected participation "no answer" (NULL) is hidden like
    an answer: on every task, or, with --assignment, on the assigned tasks only, at a far smaller total loss.

    With --comparisons an answer is which of two items is better, and crowdveil rank reads the reports. The mechanism
    designed sends two symbols (ties are tossed) or three, whichever is expected to tell more of the order.
    """
    from crowdveil.answers.write_reports import formula_names_warning
    from crowdveil.design.mechanism_from_settings import warnings_of_unused_budget
    from crowdveil.simulate.channel_assignment import assign_channels
    from crowdveil.simulate.perturbed_collection import perturb_collection
    from crowdveil.storage.estimate_files import warning_of_stale_results
    from crowdveil.storage.perturbed_collection import collection_files, read_channel_rows, write_collection
    from crowdveil.storage.write_collection import collection_outputs

    asked = _as_comparisons(asked)
    read, inputs, assignment = _read(asked)
    cells = _most_cells_of_worker(asked, assignment, len(read.answers.tasks))
    requested = _within_budget(asked, read, cells)
    channels = None if asked.channels is None else read_channel_rows(asked.channels)
    setup = assign_channels(requested, read.alphabet, read.answers, channels=channels, assignment=assignment)
    outputs = collection_outputs(asked.out, collection_files(setup, asked.form), replace=asked.replace)
    prior = requested.expected.prior
    named = (asked.tasks, asked.workers, asked.assignment, asked.channels, None if prior is None else prior.source)
    replaced = outputs.check_replaced_files(inputs=[*inputs, *named])
    outdated = warning_of_stale_results(asked.out)
    with progress_bar("perturbing") as bar:
        collection = perturb_collection(
            read.answers, setup, seed=asked.seed, lists_from_answers=asked.lists_from_answers, progress=bar
        )
    write_collection(asked.out, collection, asked.form, replace=asked.replace)
    formulas = formula_names_warning(
        asked.form, read.alphabet.names, collection.answers.tasks, collection.answers.workers
    )
    data = _data(collection) | {"compositions": _composed_losses_as_json(collection, cells, asked.delta)}
    unused = warnings_of_unused_budget(requested, worker_loss(data["accounts"], data["compositions"]))
    data["warnings"] = [*unused, *_rules_that_changed_answers(read, collection), *formulas, *outdated]
    rows = _rows(data, _mechanism_and_settings_text(collection, channels), collection.reasons_for_no_privacy)
    print_written(data, rows, outputs.paths, replaced)


def _as_comparisons(asked: PerturbOptions) -> PerturbOptions:
    """Return the options, of comparisons with what is expected of them; refuse those that do not go together."""
    if not asked.comparisons:
        if asked.ties is not None:
            raise click.UsageError("--ties requires --comparisons.")
        return asked
    from crowdveil.design.comparison_channel import TIES, ExpectedComparisons

    other = sorted(stated_options() & NOT_OF_COMPARISONS)
    if other:
        raise click.UsageError(f"With --comparisons leave out {flag_of(other[0])}: the answers are left, tie, right.")
    requested = asked.requested
    if requested.name not in OF_COMPARISONS:
        raise click.UsageError(f"--comparisons needs --mechanism {' or '.join(OF_COMPARISONS)}.")
    if asked.ties is not None and requested.name != "designed":
        raise click.UsageError("--ties is an option of designed.")
    comparisons = ExpectedComparisons(
        ties=TIES if asked.ties is None else asked.ties, answered=requested.expected.participation_rate
    )
    return replace(asked, requested=replace(requested, expected=replace(requested.expected, comparisons=comparisons)))


def _read(asked: PerturbOptions) -> tuple[AnswersRead, Sequence[Path], Assignment | None]:
    """Return the answers, the files that hold them, and the assignment."""
    from crowdveil.storage.answers import read_answers, read_public_campaign_lists
    from crowdveil.storage.ranking.pairs import read_comparison_answers, read_public_pairs

    simulated = asked.seed is not None or asked.lists_from_answers
    public = not simulated and asked.requested.participation == "public"
    given = {"tasks": asked.tasks, "workers": asked.workers, "assignment": asked.assignment}
    with open_sources(asked.answers, asked.layout) as source, progress_bar("reading", unit="bytes") as reading:
        if asked.comparisons:
            pairs = read_public_pairs(**given)
            compared = read_comparison_answers(
                source, pairs, duplicates=asked.duplicates, private=not simulated, public_participation=public
            )
            return compared, source.inputs, pairs.assignment
        lists = read_public_campaign_lists(**given)
        read = read_answers(
            source,
            alphabet=asked.alphabet,
            duplicates=asked.duplicates,
            merge_labels=asked.merge_labels,
            tasks=lists.tasks,
            workers=lists.workers,
            public_participation=public,
            progress=reading,
        )
    return read, source.inputs, lists.assignment


def _within_budget(asked: PerturbOptions, read: AnswersRead, cells: int) -> MechanismSettings:
    """Return the settings, with the epsilon of a cell that a budget allows."""
    from crowdveil.design.mechanism_from_settings import settings_within_budget

    tasks = len(read.answers.tasks)
    return settings_within_budget(asked.requested, read.alphabet, tasks=tasks, cells=cells, delta=asked.delta)


def _rules_that_changed_answers(read: AnswersRead, collection: PerturbedCollection) -> list[str]:
    """Return the rules that changed answers; for runs without privacy also how often they did."""
    from crowdveil.answers.facts.asked import missing_lists_reason

    if not collection.reasons_for_no_privacy:
        return list(read.rules)
    simulated = collection.seed is not None and collection.lists_taken_from_answers
    lists = [f"{missing_lists_reason(collection.lists_taken_from_answers).capitalize()}."] if simulated else []
    return [*lists, *read.counts]


def _most_cells_of_worker(asked: PerturbOptions, assignment: Assignment | None, tasks: int) -> int:
    """Return the most cells of a worker; refuse a delta without a budget, and a budget with epsilons by worker."""
    if asked.requested.budget is not None and asked.channels is not None:
        raise click.UsageError("--budget gives all workers one epsilon: leave out --channels, or give --epsilon.")
    if asked.delta is not None and asked.requested.budget is None:
        raise click.UsageError("--delta requires --budget. `crowdveil account` states other losses at a delta.")
    return tasks if assignment is None else int(assignment.per_worker.max())


def _composed_losses_as_json(collection: PerturbedCollection, cells: int, delta: float | None) -> list[dict[str, Any]]:
    """Return the loss at delta as JSON values; empty without delta, privacy or a single table."""
    from crowdveil.privacy.composition import composed_losses

    if delta is None or collection.reasons_for_no_privacy or collection.setup.table is not None:
        return []
    return [asdict(row) for row in composed_losses(collection.mechanism, tasks=cells, delta=delta)]


def _data(collection: PerturbedCollection) -> dict[str, Any]:
    from crowdveil.answers.facts.collection import GUARANTEE_SCOPE
    from crowdveil.answers.reports import Reports
    from crowdveil.channels.guarantee import ONE_RUN
    from crowdveil.design.mechanism_from_settings import mechanism_parameters_by_name
    from crowdveil.storage.perturbed_collection import crowd_of_collection

    answers, mechanism, alphabet = collection.answers, collection.mechanism, collection.answers.alphabet
    public = mechanism.participation == "public"
    facts = crowd_of_collection(collection).collection
    return {
        "mechanism": mechanism.name,
        "description": collection.description,
        "parameters": mechanism_parameters_by_name(mechanism) if collection.accounts else {},
        "participation": mechanism.participation,
        "simulation": collection.seed is not None,
        "seed": collection.seed,
        "lists_from_answers": list(collection.lists_taken_from_answers),
        "privacy": f"none: {collection.reasons_for_no_privacy}"
        if collection.reasons_for_no_privacy
        else facts.guarantee_text,
        "holds_for": None if collection.reasons_for_no_privacy else ONE_RUN,
        "holder": GUARANTEE_SCOPE,
        "accounts": [asdict(row) for row in collection.accounts],
        "labels": [] if alphabet is None else list(alphabet.names),
        "tasks": len(answers.tasks),
        "workers": len(answers.workers),
        "answers": len(answers) if public else None,
        "assigned": None if collection.setup.assignment is None else len(collection.setup.assignment),
        "reports": len(collection.sent) if isinstance(collection.sent, Reports) else len(answers.workers),
        "certificate_sha256": facts.certificate_sha256,
    }


def _mechanism_and_settings_text(collection: PerturbedCollection, channels: ChannelRows | None) -> str:
    """Return the mechanism with the settings in use; settings that a file gives are named by the file."""

    from crowdveil.design.mechanism_from_settings import short_description

    table, mechanism = collection.setup.table, collection.mechanism
    if channels is not None:
        names = {"epsilon": "epsilon", "cuts": "thresholds"}
        return f"{mechanism.name}; {' and '.join(names[name] for name in channels.settings)} from {channels.source}"
    if table is not None:
        return f"{mechanism.name}; cuts assigned in turn, {len(table.channels)} channels by worker"
    return short_description(mechanism, epsilon=not collection.reasons_for_no_privacy)


def _epsilon_rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows of the account; of a simulation, that none holds and which would without a seed."""
    if not data["simulation"]:
        return account_rows(data["accounts"])
    exact = [row["exact"] for row in data["accounts"] if row["unit"] == "cell"]
    promised = f"; without --seed it would be {format_bound(exact[0], SHOWN_DIGITS)} per cell (single answer)"
    return [("epsilon", f"none: simulation{promised if exact else ''}")]


def _rows(data: dict[str, Any], mechanism: str, caveat: str) -> list[tuple[str, str]]:
    """Return the table; `caveat` says why the reports carry no privacy, or is empty."""
    marked = [("simulation only: no privacy" if data["simulation"] else "no privacy", caveat)] if caveat else []
    digest, none = (
        data["certificate_sha256"],
        "none: the mechanism has no channel per cell; its guarantee is in crowd.json",
    )
    sealed = f"SHA-256 {digest}" if digest else none
    hidden = data["answers"] is None
    answered = "not counted, since participation is protected;" if hidden else f"{data['answers']:,}"
    return [
        *marked,
        ("mechanism", mechanism),
        *composition_rows(data["compositions"]),
        *_epsilon_rows(data),
        ("answers", f"{answered} from {crowd_text(data['workers'], data['tasks'])}"),
        *([] if data["assigned"] is None else [("assigned cells", f"{data['assigned']:,}")]),
        ("reports", f"{data['reports']:,}"),
        *([] if caveat else [("holds for", data["holds_for"])]),
        *([] if data["simulation"] else [("holder", data["holder"])]),
        ("certificate", sealed),
        *warning_rows(data),
    ]

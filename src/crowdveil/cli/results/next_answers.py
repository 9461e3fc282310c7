"""`crowdveil next`: which tasks need another answer, and from whom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.data.draw_gold import more_gold
from crowdveil.cli.display import number_with_six_digits, truncated_json_rows
from crowdveil.cli.options import COUNT, FILE_PATH, NameChoice, flag_of, stated_options
from crowdveil.cli.results.next_comparisons import list_next_comparisons
from crowdveil.cli.results.reports_argument import REPORTS, history_option, open_reports, reports_options, truths_option
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import number_of
from crowdveil.registry import METHOD_NAMES

if TYPE_CHECKING:
    from crowdveil.quality.next_answers import Purchase
    from crowdveil.storage.recorded_reading_options import NamedReports

SHOWN_ANSWERS = 5
FEW_TRUTHS = 0.01
"""Expected number of wrong truths fewer, below which none is stated."""
NOT_OF_GOLD = ("workers", "per_worker", "method", "history", "adjudicate", "below")
"""Options that do not go with a draw of gold."""
NOT_OF_COMPARISONS = ("workers", "per_worker", "method", "history", "adjudicate", "below", "gold", "truths", "labels")
"""Options that do not go with comparisons."""
NOT_OF_ADJUDICATION = ("workers", "per_worker")
"""Options that do not go with tasks to decide."""
NOBODY = "every worker who can be asked has answered every task: name others with --workers"


@click.command(
    "next",
    cls=Verb,
    values=REPORTS,
    example="crowdveil next labels.csv --budget 500 --out next.csv",
    main_options=("budget", "adjudicate", "out", "workers", "per_worker", "gold", "as_json"),
    short_help="List the next answers to ask for, by expected gain.",
)
@click.option(
    "--budget", type=COUNT, help="Number of answers to ask for; with --adjudicate, of tasks to list (default: all)."
)
@click.option("--adjudicate", is_flag=True, help="List the tasks that a person should decide instead, with reasons.")
@click.option(
    "--below",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="With --adjudicate: list truths less certain than P. [default: 0.8]",
)
@click.option("--out", type=FILE_PATH, help="CSV file: task, worker, expected_gain, information, reports.")
@click.option("--workers", type=FILE_PATH, help="CSV file of the workers to ask. [default: all of REPORTS]")
@click.option(
    "--per-worker",
    type=COUNT,
    help="Largest number of answers to ask of one worker. [default: three times an even share of the budget]",
)
@click.option(
    "--gold", metavar="FILE", help="Instead, list the next tasks to label as gold; FILE is that of data draw-gold."
)
@click.option("--comparisons", is_flag=True, help="REPORTS are comparisons, as of rank: list pairs to compare.")
@click.option(
    "--participation-rate", type=click.FloatRange(0, 1, min_open=True), metavar="S",
    help="With --comparisons: share of the asked comparisons that are answered, as in rank.",
)  # fmt: skip
@click.option("--method", type=NameChoice(METHOD_NAMES), help="Estimator, as in infer.")
@truths_option
@history_option
@reports_options
def next_answers(
    reports: NamedReports,
    budget: int | None,
    adjudicate: bool,
    below: float | None,
    out: Path | None,
    workers: Path | None,
    per_worker: int | None,
    gold: str | None,
    comparisons: bool,
    participation_rate: float | None,
    method: str | None,
    history: Path | None,
) -> None:
    """List the next answers to ask for: which task, which worker, and the expected gain.

    REPORTS is what infer reads, or the folder that it wrote. The list is a batch with at most one answer to each task.
    Ask for these answers, add them to the file, and run infer and next again.

    \f
    The gain of an answer is computed under the fitted model, through the channel if there is one. expected_gain is the
    expected decrease of the error of the task; it is 0 if no single answer changes the truth. information is the mutual
    information of truth and report, in nats. Tasks with fewer than two reports come first; then the pairs (task,
    worker) with the most information, among workers who have neither answered nor skipped the task. With --gold, the
    next tasks of its draw are listed, for experts to label.

    With --adjudicate, the file lists the tasks whose truth is uncertain, or not what most workers say. It has the
    columns task, truth (empty), proposed, confidence, reason and answers. Write truths into it, and give it to infer as
    --gold; empty truths are left out. These tasks are chosen, not drawn: they can guide a fit, but must not score one.

    With --comparisons, the file has the columns left, right (and list), drawn to the sides at random, information (in
    nats, given the answers above it) and comparisons (of the pair, yet).

    The gold of a folder of results guides the fit and is not listed. With --truths, answers need an order or gold.

    A worker in --workers without a report counts as an average worker. With protected participation, there are cells
    left to ask only if tasks were assigned. Each further report adds its epsilon to the privacy loss of its worker.
    """
    if comparisons:
        _refuse_stated(NOT_OF_COMPARISONS, "--comparisons")
        list_next_comparisons(reports, _required(budget), out, participation_rate)
    elif participation_rate is not None:
        raise click.UsageError("--participation-rate requires --comparisons.")
    elif gold is not None:
        _refuse_stated(NOT_OF_GOLD, "--gold")
        more_gold(reports, _required(budget), gold, out)
    elif adjudicate:
        _refuse_stated(NOT_OF_ADJUDICATION, "--adjudicate")
        _adjudicate(reports, budget, below, out, method, history)
    elif below is not None:
        raise click.UsageError("--below requires --adjudicate.")
    else:
        _list_next_answers(reports, _required(budget), out, workers, per_worker, method, history)


def _refuse_stated(names: tuple[str, ...], option: str) -> None:
    """Refuse the first of the named options that is stated beside another."""
    for name in sorted(stated_options().intersection(names)):
        raise click.UsageError(f"{flag_of(name)} cannot be used with {option}.")


def _required(budget: int | None) -> int:
    if budget is None:
        raise click.UsageError("Missing option '--budget'.")
    return budget


def _list_next_answers(
    reports: NamedReports,
    budget: int,
    out: Path | None,
    workers: Path | None,
    per_worker: int | None,
    method: str | None,
    history: Path | None,
) -> None:
    """Read, infer, choose the next answers, write, print."""
    from crowdveil.inference.infer import infer
    from crowdveil.quality.next_answers import choose_next, require_next_answer
    from crowdveil.storage.answers import read_name_column
    from crowdveil.storage.given_files import read_history

    with open_reports(reports, out, "next answers", [workers, history]) as read:
        known = read.gold_of_results
        require_next_answer(read.evidence, known)
        earlier = None if history is None else read_history(history)
        fitted = infer(read.evidence, method, gold=known, history=earlier)
        names = None if workers is None else read_name_column(workers, "worker")
        chosen = choose_next(fitted, names, budget=budget, per_worker=per_worker)
    read.write_table_and_print(_data(chosen), _rows_to_print, chosen.columns)


def _adjudicate(
    reports: NamedReports,
    most: int | None,
    below: float | None,
    out: Path | None,
    method: str | None,
    history: Path | None,
) -> None:
    """Read, infer, choose the tasks to decide, write, print."""
    from crowdveil.inference.infer import infer
    from crowdveil.quality.adjudication import CONFIDENCE, tasks_to_decide
    from crowdveil.storage.given_files import read_history

    with open_reports(reports, out, "tasks to decide", [history]) as read:
        earlier = None if history is None else read_history(history)
        fitted = infer(read.evidence, method, gold=read.gold_of_results, history=earlier)
        found = tasks_to_decide(fitted, below=CONFIDENCE if below is None else below, most=most)
    data = {
        "method": found.estimate.method,
        "below": found.below,
        "gold": found.estimate.gold_used,
        "tasks": len(found.estimate.tasks),
        "to_decide": found.found,
        "first": truncated_json_rows(found.columns(), SHOWN_ANSWERS),
    }
    read.write_table_and_print(data, _decisions_to_print, found.columns)


def _decisions_to_print(data: dict[str, Any]) -> list[tuple[str, str]]:
    first = data["first"]
    lines = [f"{place}. task {one['task']}: {one['reason']}" for place, one in enumerate(first["items"], start=1)]
    return [
        ("method", data["method"]),
        (
            "to decide",
            f"{data['to_decide']:,} of {data['tasks']:,} tasks: confidence below {data['below']:g}, or votes",
        ),
        ("tasks", f"first {first['shown']:,} of {first['of']:,}, the least certain first"),
        *[("", line) for line in lines],
        ("then", "with --out FILE, write truths into its column truth, and run infer with --gold FILE"),
    ]


def _data(purchase: Purchase) -> dict[str, Any]:
    chosen = purchase.chosen
    return {
        "method": purchase.estimate.method,
        "budget": purchase.budget,
        "per_worker": purchase.per_worker,
        "gold": purchase.estimate.gold_used,
        "tasks": len(purchase.estimate.without_gold.tasks),
        "expected_error": chosen.expected_cost,
        "expected_gain": float(chosen.expected_gain.sum()) / len(purchase.estimate.without_gold.tasks),
        "epsilon_per_answer": purchase.epsilon_per_answer,
        "answers": truncated_json_rows(purchase.columns(), SHOWN_ANSWERS),
    }


def _rows_to_print(data: dict[str, Any]) -> list[tuple[str, str]]:
    answers, epsilon = data["answers"], data["epsilon_per_answer"]
    short = "; the budget is larger than the batch" if answers["of"] < data["budget"] else ""
    lines = [
        f"{place}. task {one['task']} with {number_of(one['reports'], 'answer')}, ask {one['worker']}: {one['reason']}"
        for place, one in enumerate(answers["items"], start=1)
    ]
    now, gain = number_with_six_digits(data["expected_error"]), data["expected_gain"]
    fewer = gain * data["tasks"]
    less = f"{fewer:,.2f} fewer wrong truths in expectation" if fewer >= FEW_TRUTHS else "almost no truth changes"
    loss = (
        f"each report adds {number_with_six_digits(data['epsilon_per_answer'])} to its worker's loss" if epsilon else ""
    )
    return [
        ("method", data["method"]),
        *(
            [("gold", f"{data['gold']:,} tasks with a known truth; no answers to them are asked for")]
            if data["gold"]
            else []
        ),
        ("expected error", f"{now} per task now; after these answers, {less}"),
        *([("epsilon", loss)] if loss else []),
        ("per worker", f"at most {data['per_worker']:,}"),
        ("answers", f"first {answers['shown']:,} of {answers['of']:,}, ranked by information{short}"),
        *[("", line) for line in lines or [NOBODY]],
    ]

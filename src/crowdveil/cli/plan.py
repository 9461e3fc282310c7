"""`crowdveil plan`: expected error of a campaign; mechanism, epsilon and number of workers for a target error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nextafter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.channels.rounding import format_bound, format_three_decimals, sum_rounded_up
from crowdveil.cli.display import (
    checked_stdout,
    document_of_running_command,
    json_text,
    print_result,
    printable,
    row_of_replaced_files,
)
from crowdveil.cli.options import (
    COUNT,
    DELTA,
    FILE_PATH,
    FOLDER_PATH,
    NUMBERS,
    alphabet_of,
    alphabet_options,
    flag_of,
    option_group,
    participation_option,
    stated_options,
)
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.ranking_plan import RankingPlanOptions, print_ranking_plan, ranking_options, ranking_plan_options
from crowdveil.cli.share_plan import (
    SharePlanOptions,
    is_survey,
    print_plan_of_settings,
    print_share_plan,
    share_options,
    share_plan_options,
)
from crowdveil.cli.verb import Verb, wants_json
from crowdveil.display.counts import number_of
from crowdveil.registry import PLAN_METHODS

if TYPE_CHECKING:
    from crowdveil.campaign.settings.settings_file import CampaignSettings
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.channels.guarantee import Participation
    from crowdveil.cli.progress import Bar
    from crowdveil.design.mechanism_from_settings import Expectation
    from crowdveil.files.atomic_write import Outputs
    from crowdveil.planning import Pilot, Plan, PlannedCampaign

EXAMPLE = """crowdveil plan --labels no,yes --tasks 500 --workers 100
          --participation-rate 0.3 --target-error 0.05"""
FILE, PICTURE, PRIOR = "plan.json", "plan.svg", "prior.csv"
"""Names of the files; the last one is the prior of merged labels."""
FOR_ONE_QUESTION = ("labels", "scale", "ordered", "prior", "ability", "sigmas", "pilot", "gold", "target", "method")
"""Options that do not go with several questions."""
TRUTH_OPTIONS = frozenset(FOR_ONE_QUESTION).union(("budget", "tasks", "participation", "participation_rate"))
"""Options with which the settings of a survey are planned as a campaign that asks for truths."""
OF_A_QUESTION = ("campaign", "error_name", "target_error", "constant_error", "verdict", "recommended")
"""What JSON has of each of several questions; its plan.json has all."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Options of a plan, by parameter name; those that are not given are None or empty.

    Attributes:
        settings: settings file of a campaign, in place of the other options.
        alphabet, tasks, workers: answers and sizes.
        target: error wanted.
        budget, epsilon: epsilons of a worker, or of a cell.
        delta: at which budgets hold.
        participation, assigned_per_task, method: of the campaign.
        participation_rate, prior, ability, sigmas: expected answers.
        pilot, gold: files of answers to some tasks, and of their truths.
        out: folder of the files.
    """

    settings: Path | None
    alphabet: Alphabet | None
    tasks: int | None
    workers: int | None
    target: float | None
    budget: tuple[float, ...]
    epsilon: tuple[float, ...]
    delta: float | None
    participation: Participation
    assigned_per_task: int | None
    method: str | None
    participation_rate: float | None
    prior: Path | None
    ability: float | None
    sigmas: tuple[float, ...] | None
    pilot: Path | None
    gold: Path | None
    out: Path | None


def _flattened(_context: click.Context, _option: click.Parameter, lists: tuple[tuple[float, ...], ...]) -> Any:
    return tuple(number for numbers in lists for number in numbers)


def _with_settings(asked: PlanOptions, source: CampaignSettings) -> PlanOptions:
    """Return the options, with those that are not given from the settings of a campaign."""
    from crowdveil.campaign.planning.expected_error import crowd_expectation
    from crowdveil.inference.methods import channel_method

    if source.pairs:
        raise click.UsageError("The settings ask for comparisons, not for truths: give --workers, --epsilon, --out.")
    assigned, expected = crowd_expectation(source)
    stated: dict[str, Any] = {
        "tasks": len(source.rows),
        "workers": source.slots,
        "participation_rate": expected.participation_rate,
    }
    if asked.alphabet is None:
        stated |= {"alphabet": source.alphabet, "ability": expected.ability, "prior": source.privacy.prior}
        stated["sigmas"] = expected.sigmas or None
    if not (asked.epsilon or asked.budget):
        own = source.privacy
        budgets, epsilon = own.levels or (own.budget_per_worker,), own.epsilon_per_answer
        stated |= {"budget": budgets} if epsilon is None else {"epsilon": (epsilon,)}
    if not (asked.budget or stated.get("budget")):
        stated["assigned_per_task"] = assigned
    if "participation" not in stated_options():
        asked = replace(asked, participation=source.participation)
    found = replace(asked, **{name: value for name, value in stated.items() if getattr(asked, name) in (None, ())})
    assert found.alphabet is not None
    return replace(found, method=found.method or channel_method(found.alphabet))


expectation_options = option_group(
    click.option(
        "--participation-rate", type=float, metavar="S", help="Share of all tasks that a worker answers. [default: 1]"
    ),
    click.option(
        "--prior",
        type=FILE_PATH,
        help="Public prior (columns label, probability), also for inference. [default: uniform; inference learns it]",
    ),
    click.option("--ability", type=float, metavar="A", help="Mean probability of a correct label. [default: 0.75]"),
    click.option(
        "--sigmas",
        type=NUMBERS,
        help="Scale: workers' standard deviations, in equal shares. [default: 0.1 and 0.5 of the range]",
    ),
    click.option("--pilot", type=FILE_PATH, help="Answers to about 50 random tasks, instead of --ability."),
    click.option("--gold", type=FILE_PATH, help="Known truths of tasks of the pilot (task,truth)."),
    heading="Expected workers and answers",
)


@click.command(
    cls=Verb,
    values={
        "alphabet": alphabet_of,
        "survey": share_plan_options,
        "ranking": ranking_plan_options,
        "asked": PlanOptions,
    },
    example=EXAMPLE,
    main_options=("labels", "scale", "workers", "tasks", "participation_rate", "target", "epsilon", "share", "out"),
    short_help="Choose mechanism, epsilon and workers; predict the error.",
)
@click.option("--campaign", "settings", type=FILE_PATH, help="Settings file of a campaign, instead of options.")
@alphabet_options
@click.option("--tasks", type=COUNT, help="Number of tasks.")
@click.option("--workers", type=COUNT, help="Number of workers.")
@click.option("--target-error", "target", type=float, metavar="E", help="Target error; not needed with --budget.")
@click.option(
    "--budget",
    type=NUMBERS,
    multiple=True,
    callback=_flattened,
    help=(
        "Epsilons per worker for the whole campaign. For each, the plan chooses tasks per worker and "
        "epsilon per answer."
    ),
)
@click.option("--delta", type=DELTA, help="The budgets hold at this delta, such as 1e-6.")
@expectation_options
@click.option(
    "--epsilon",
    type=NUMBERS,
    multiple=True,
    callback=_flattened,
    help="Epsilons per cell. [default: 0.5,1,2,3,4,5,6,8]",
)
@participation_option
@click.option(
    "--assigned-per-task",
    type=COUNT,
    help="Workers publicly assigned to each task; only assigned cells report. [default: all]",
)
@click.option(
    "--method",
    type=click.Choice(PLAN_METHODS),
    metavar="NAME",
    help=f"Estimator: {', '.join(PLAN_METHODS)}. [default: by type of answers]",
)
@share_options
@ranking_options
@click.option("--out", type=FOLDER_PATH, help="Folder of the files.")
def plan(asked: PlanOptions, survey: SharePlanOptions | None, ranking: RankingPlanOptions | None) -> None:
    """Predict the error of a campaign before it starts, and recommend mechanism, epsilon and number of workers.

    The error is the share of wrong labels, or the mean absolute error on a scale. Epsilon is the privacy loss of one
    cell: one worker's answer to one task. With protected participation it also hides whether a worker answered.

    \f
    --campaign reads the settings file of `crowdveil campaign new`: answers, tasks, workers, participation, epsilon or
    budget, and the expected crowd. It also shows the error that `crowdveil campaign new` would expect. Other options
    replace these settings in the plan. A survey is planned as by --share. Without a target or budget, the target is 0.9
    of the error of the best public constant, which a campaign must meet. Several questions are planned one by one, each
    with its part of the budgets; --out has a folder for each.

    Campaigns are simulated with assumed workers and truths; truths are inferred as infer does. Each expected error has
    an interval for real crowds. The output ends with the commands that carry out the plan.

    --share plans a survey: how wide the interval of a share is expected to be, by number of people and epsilon, and
    how many people --half-width needs. Of the other options it takes --workers (people asked), --epsilon, --labels,
    --participation and --out.

    --comparisons plans a ranking: the expected share of wrongly ordered pairs.

    --out writes plan.json and plan.svg, and prior.csv if a long scale was merged.
    """
    if survey is not None:
        names = ("alphabet", "workers", "epsilon", "participation", "out")
        print_share_plan(survey, **{name: getattr(asked, name) for name in names})
        return
    if ranking is not None:
        names = ("workers", "epsilon", "participation", "participation_rate", "out")
        print_ranking_plan(ranking, **{name: getattr(asked, name) for name in names})
        return
    if asked.settings is None:
        _print_plan(_checked_plan(asked, None))
        return
    from crowdveil.answers.spreadsheets.sheets import sheet_or_file_text
    from crowdveil.campaign.settings.settings_file import read_settings

    sources = read_settings(asked.settings, sheet_or_file_text).by_question
    if len(sources) == 1 and not stated_options() & TRUTH_OPTIONS and is_survey(sources[0]):
        print_plan_of_settings(sources[0], workers=asked.workers, epsilon=asked.epsilon, out=asked.out)
    elif len(sources) == 1:
        _print_plan(_checked_plan(_with_settings(asked, sources[0]), sources[0]))
    else:
        _print_plans([_checked_plan(one, source) for one, source in _options_by_question(asked, sources)])


@dataclass(frozen=True, kw_only=True)
class _CheckedPlan:
    """A plan to be made: options, settings of a campaign or None, expectation, campaign, and its outputs or None."""

    asked: PlanOptions
    source: CampaignSettings | None
    expected: Expectation
    campaign: PlannedCampaign
    outputs: Outputs | None
    replaced: list[Path]


def _options_by_question(
    asked: PlanOptions, sources: Sequence[CampaignSettings]
) -> list[tuple[PlanOptions, CampaignSettings]]:
    """Return the options of each question with its settings: its part of the budgets, and a folder of its own."""
    given = stated_options().intersection(FOR_ONE_QUESTION)
    if given:
        raise click.UsageError(
            f"{flag_of(min(given))} needs one question, and the settings have {len(sources)}: leave it out."
        )
    budget = tuple(nextafter(one / len(sources), 0.0) for one in asked.budget)
    folders = [None if asked.out is None else asked.out / f"question-{k}" for k in range(1, len(sources) + 1)]
    return [
        (_with_settings(replace(asked, budget=budget, out=out), source), source)
        for out, source in zip(folders, sources, strict=True)
    ]


def _checked_plan(asked: PlanOptions, source: CampaignSettings | None) -> _CheckedPlan:
    """Return a plan to be made after a check of its options, and of the files that it replaces."""
    from crowdveil.files.atomic_write import Outputs

    _check_usage(asked, for_campaign=source is not None)
    expected, campaign = _expected(asked)
    merged = campaign.crowd.alphabet != asked.alphabet
    names = (FILE, PICTURE, *([PRIOR] if merged and asked.prior is not None else []))
    outputs = None if asked.out is None else Outputs(folder=asked.out, names=names, kind="plan", remove_stale=True)
    replaced = [] if outputs is None else outputs.check_replaced_files(inputs=[asked.prior])
    return _CheckedPlan(
        asked=asked, source=source, expected=expected, campaign=campaign, outputs=outputs, replaced=replaced
    )


def _made_plan(checked: _CheckedPlan) -> tuple[Plan, dict[str, Any], list[tuple[str, str]]]:
    """Make a plan and write its files; return it with its JSON data and its lines."""
    from crowdveil.cli.plan_commands import campaign_command, next_commands
    from crowdveil.display.svg_pictures import svg_file
    from crowdveil.files.atomic_write import write_outputs
    from crowdveil.planning.plan_document import plan_data, prior_csv

    asked, source, expected, campaign = checked.asked, checked.source, checked.expected, checked.campaign
    merged, outputs = campaign.crowd.alphabet != asked.alphabet, checked.outputs
    prior = asked.prior if not merged or None in (asked.prior, asked.out) else asked.out / PRIOR  # type: ignore[operator]
    given = source is not None or "participation" in stated_options()
    with progress_bar("simulating") as bar:
        made = _make_plan(campaign, asked, bar, participation_given=given)
    stated, rate_given = list[tuple[str, str]](), asked.participation_rate is not None
    data = plan_data(made, expected, participation_given=given, rate_given=rate_given)
    named = None if prior is None else str(prior)
    data["commands"] = [] if made.recommended is None else next_commands(made.recommended, expected, named)
    if source is not None and asked.settings is not None:
        data["campaign"], stated = expected_by_settings(source)
        data["commands"] = [campaign_command(asked.settings)] if data["campaign"]["worth_asking"] else []
    data["merged_labels"] = asked.alphabet.size if merged and asked.alphabet is not None else None
    data["files"] = [] if outputs is None else list(map(str, outputs.paths))
    data["replaced"] = list(map(str, checked.replaced))
    if outputs is not None:
        files = {FILE: json_text(document_of_running_command(data)) + "\n", PICTURE: svg_file(made.picture())}
        write_outputs(outputs, files | {PRIOR: prior_csv(campaign.crowd)})
    return made, data, [*stated, *plan_lines(made, data)]


def _print_plan(checked: _CheckedPlan) -> None:
    """Make a plan, write its files, print it."""
    made, data, rows = _made_plan(checked)
    written = [("written", path) for path in data["files"]]
    print_result(data, [*rows, *written, *row_of_replaced_files(data["replaced"])])
    if not wants_json():
        print_candidates(made)


def _print_plans(questions: Sequence[_CheckedPlan]) -> None:
    """Make the plan of each question, write its files, print all."""
    answered: dict[str, Any] = {"questions": [], "files": [], "replaced": []}
    commands = list[list[str]]()
    for checked in questions:
        assert checked.source is not None
        made, data, rows = _made_plan(checked)
        if not wants_json():
            shown = [row for row in rows if row[0] != "next"]
            print_result({}, [("question", printable(checked.source.question)), *shown])
            print_candidates(made)
            click.echo()
        commands.append(data["commands"])
        named = {"question": checked.source.question, **{name: data[name] for name in OF_A_QUESTION}}
        answered["questions"].append(named)
        answered = answered | {name: [*answered[name], *data[name]] for name in ("files", "replaced")}
    total = sum_rounded_up((one["campaign"]["epsilon_per_worker"], 1) for one in answered["questions"])
    loss = f"epsilon {format_three_decimals(total)} per worker for all questions together, with these settings"
    written = [("written", path) for path in answered["files"]]
    answered |= {"epsilon_per_worker": total, "commands": commands[0] if all(commands) else []}
    following = [("next", line) for line in answered["commands"]]
    print_result(answered, [("in all", loss), *following, *written, *row_of_replaced_files(answered["replaced"])])


def _expected(asked: PlanOptions) -> tuple[Expectation, PlannedCampaign]:
    """Return what is expected of the answers, and the campaign."""
    from crowdveil.answers.ingest.column_readers import load_prior
    from crowdveil.design.mechanism_from_settings import Expectation
    from crowdveil.planning.expected_campaign import expected_campaign

    rate = 1.0 if asked.participation_rate is None else asked.participation_rate
    prior = None if asked.prior is None else load_prior(asked.prior)
    expected = Expectation(prior=prior, participation_rate=rate, ability=asked.ability, sigmas=asked.sigmas or ())
    alphabet: Any = asked.alphabet
    sizes: Any = {name: getattr(asked, name) for name in ("tasks", "workers", "assigned_per_task")}
    pilot = _pilot(asked.pilot, asked.gold, alphabet)
    return expected, expected_campaign(
        alphabet, expected, asked.participation, method=asked.method, pilot=pilot, **sizes
    )


def _make_plan(campaign: PlannedCampaign, asked: PlanOptions, bar: Bar | None, *, participation_given: bool) -> Plan:
    """Return the plan; by budgets, both kinds of participation are compared unless one was stated."""
    from crowdveil import planning
    from crowdveil.planning.plan import WORTH_ASKING

    if asked.budget:
        both: tuple[Participation, ...] = ("protected", "public")
        compared = (campaign.participation,) if participation_given else both
        return planning.plan_of_worker_budgets(
            campaign, asked.budget, target=asked.target, participations=compared, delta=asked.delta, progress=bar
        )
    usual = WORTH_ASKING * campaign.crowd.constant_error
    target, epsilons = usual if asked.target is None else asked.target, asked.epsilon or planning.EPSILONS
    return planning.plan_campaign(campaign, target=target, epsilons=epsilons, progress=bar)


def _pilot(answers: Path | None, gold: Path | None, alphabet: Alphabet) -> Pilot | None:
    """Return the estimates of a pilot from its files; None without one."""
    from crowdveil.answers.reports import Reports
    from crowdveil.planning import Pilot
    from crowdveil.storage.given_files import read_known_truths

    if answers is None:
        if gold is not None:
            raise click.UsageError("--gold requires --pilot, the answers to these tasks.")
        return None
    read = Reports.from_csv(answers, alphabet=alphabet)
    return Pilot.of(read, None if gold is None else read_known_truths(str(gold), "categorical").truths)


def _check_usage(asked: PlanOptions, *, for_campaign: bool) -> None:
    """Refuse a plan without answers, a size or an aim, and options that a plan by budgets chooses itself."""
    for name in ("tasks", "workers"):
        if getattr(asked, name) is None:
            raise click.UsageError(f"Missing option '{flag_of(name)}' (or '--campaign', a settings file).")
    if asked.target is None and not asked.budget and not for_campaign:
        raise click.UsageError("Missing option '--target-error' (or '--budget', the epsilon of a worker).")
    if asked.budget and (asked.epsilon or asked.assigned_per_task is not None):
        raise click.UsageError(
            "--budget chooses epsilon per answer and assignment: leave out --epsilon and --assigned-per-task."
        )
    if asked.delta is not None and not asked.budget:
        raise click.UsageError("--delta requires --budget.")
    if asked.alphabet is None:
        raise click.UsageError("Give the possible answers: --labels or --scale.")


ALIGN_LEFT = {"epsilon", "budget", "participation", "tasks", "per answer", "mechanism"}
"""Columns that are aligned left, and may be folded."""
LEAST_WIDTHS = {"per worker": 76, "bytes": 92}
BUDGET_LEAST_WIDTHS = {"real crowds": 100}
"""Widths of a terminal from which columns are shown, in plans by epsilons and by budgets."""


def plan_lines(made: Plan, data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of a plan, as pairs of name and text; `data` is its JSON data."""
    from crowdveil.planning.plan_sentences import error_with_interval_text

    rows = [("assumed", assumption_text(data))]
    if not made.by_budget:
        rows.append(("real crowds", data["real_sets"]))
    rows += [("plan", sentence) for sentence in data["verdict"]]
    found = data["recommended"]
    if found is not None and not made.by_budget:
        guarantee = (
            f"epsilon {format_bound(found['epsilon_per_cell'])} per cell, participation {found['participation']}"
        )
        rows.append(("reports", f"{', '.join(found['reports'])}; {guarantee}"))
    rows += [("next", line) for line in data["commands"]]
    if data["merged_labels"] is not None:
        rows.append(("scale", merged_scale_text(data)))
    rows.append(("error", "share of wrong labels" if data["error_name"] == "error_rate" else "mean absolute error"))
    rows.append(("constant", f"{made.constant_error:.3g}, the same answer for every task"))
    unprotected = error_with_interval_text(made.unprotected)
    if made.by_budget:
        rows.append(("unprotected", f"{unprotected}, all tasks open to all workers"))
        return [*rows, ("budget", "epsilon of a worker: of all assigned tasks together, answered or not")]
    reported = f"{number_of(made.results[0].cost.cells, 'cell')}, participation {data['participation']}"
    return [
        *rows,
        ("unprotected", f"{unprotected}, {made.unprotected_method}"),
        ("per worker", f"{reported}; the table has the sum of their epsilon, and bytes at one symbol per task"),
    ]


@checked_stdout()
def print_candidates(made: Plan) -> None:
    """Print a table of the choices, equivalent ones once, and name these and the hidden columns below it."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    rows = _best_rows(made) if made.by_budget else _candidate_rows(made)
    least = BUDGET_LEAST_WIDTHS if made.by_budget else LEAST_WIDTHS
    hidden = [name for name, width in least.items() if console.width < width]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    for name in rows[0]:
        if name not in hidden:
            table.add_column(name, overflow="fold", justify="left" if name in ALIGN_LEFT else "right")
    for row in rows:
        table.add_row(*(text for name, text in row.items() if name not in hidden))
    console.print()
    console.print(table)
    narrow = [f"A wider terminal, and --json, also show: {' and '.join(hidden)}."] if hidden else []
    console.print()
    for sentence in _equivalence_sentences(made) + narrow:
        console.print(sentence)


def _candidate_rows(made: Plan) -> list[dict[str, str]]:
    """Return candidates by column, equivalent ones once; an epsilon stands in its first row."""
    from crowdveil.planning.plan_sentences import expected_error_text, real_crowd_interval

    rows, shown = list[dict[str, str]](), None
    for one in made.results:
        if one.same_as is not None:
            continue
        epsilon, shown = format_bound(one.epsilon) if one.epsilon != shown else "", one.epsilon
        figures = {
            "error": expected_error_text(one.prediction, "<"),
            "real crowds": real_crowd_interval(one.prediction),
        }
        cost = {"per worker": format_bound(one.cost.worker_epsilon, 4), "bytes": f"{one.cost.bytes:,}"}
        rows.append({"epsilon": epsilon, "mechanism": one.name} | figures | cost)
    return rows


def _best_rows(made: Plan) -> list[dict[str, str]]:
    """Return the best choice for each budget and participation, by column."""
    from crowdveil.planning.plan_sentences import expected_error_text, real_crowd_interval

    whole = {one.budget: expected_error_text(one.prediction, "<") for one in made.without_assignment}
    return [
        {
            "budget": f"{one.budget:g}",
            "participation": one.campaign.participation,
            "tasks": f"{one.cost.cells:,}",
            "per answer": format_bound(one.cost.cell_epsilon, 3),
            "mechanism": one.name,
            "error": expected_error_text(one.prediction, "<"),
            "all tasks": whole[one.budget],
            "real crowds": real_crowd_interval(one.prediction),
        }
        for one in made.results
    ]


def _equivalence_sentences(made: Plan) -> list[str]:
    """Return sentences on candidates with equivalent reports."""
    epsilons: dict[tuple[str, str], list[str]] = {}
    for one in made.results:
        if one.same_as is not None and one.name == one.mechanism.name:
            epsilons.setdefault((one.name, one.same_as), []).append(format_bound(one.epsilon))
    return [f"{name} sends the same as {other} at epsilon {', '.join(at)}." for (name, other), at in epsilons.items()]


def assumption_text(data: dict[str, Any]) -> str:
    """Return the assumptions about workers, participation and truths, each with its source."""
    found = {one["name"]: (one["value"], one["source"]) for one in data["assumptions"]}
    rate, hidden = found["participation_rate"], found["participation"]
    if "ability" in found:
        low, high = data["worker_qualities"][0], data["worker_qualities"][-1]
        mean, source = found["ability"]
        workers = f"ability {mean:.3g} on average, {low:.2f} to {high:.2f} ({source})"
    else:
        sigmas, source = found["sigmas"]
        workers = f"normal errors of standard deviation {' and '.join(f'{one:.3g}' for one in sigmas)} ({source})"
    usual = "labels as in the pilot" if found["prior"][1] == "pilot" else "every label equally likely"
    truths = "the prior of --prior" if data["prior_known_to_inference"] else usual
    share = "all" if rate[0] == 1 else f"{rate[0]:.3g}"
    return (
        f"{workers}; each worker answers {share} of the tasks ({rate[1]}), participation {hidden[0]} "
        f"({hidden[1]}); {truths} ({found['prior'][1]})."
    )


def merged_scale_text(data: dict[str, Any]) -> str:
    """Return how the labels of a long scale were merged."""
    labels = data["labels"]
    shown = f"{labels[0]}, {labels[1]}..{labels[-1]}"
    return (
        f"{data['merged_labels']:,} labels were merged to {len(labels)} to plan: {shown}; the plan holds for answers "
        "and a prior on that scale"
    )


def expected_by_settings(source: CampaignSettings) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the expected error of a campaign as its settings are, as JSON data and as lines."""
    from crowdveil.campaign.planning.alternatives import is_worth_asking
    from crowdveil.campaign.planning.chosen_mechanism import mechanism_of_campaign_settings
    from crowdveil.campaign.planning.expected_error import predict_errors
    from crowdveil.planning.plan_sentences import error_with_interval_text

    chosen = mechanism_of_campaign_settings(source)
    mechanism, tasks = chosen.device_mechanism, chosen.most_tasks
    error = predict_errors(chosen.source, mechanism, method=chosen.method)
    cell, all_tasks = mechanism.guarantee, mechanism.guarantee.per_worker(tasks)
    asked = is_worth_asking(error)
    data = {
        "mechanism": mechanism.name,
        "planned": chosen.planned,
        "tasks_per_worker": tasks,
        "epsilon_per_answer": cell.epsilon,
        "epsilon_per_worker": all_tasks.epsilon,
        "worth_asking": asked,
        "expected": error.to_json(),
    }
    loss = (
        f"epsilon {format_three_decimals(all_tasks.epsilon)} per worker, {format_three_decimals(cell.epsilon)} per "
        f"answer, participation {cell.participation}{', every worker at level 1' if source.privacy.levels else ''}"
    )
    lines = [
        ("campaign", f"{mechanism.name}, {tasks:,} task{'s' * (tasks > 1)} per worker, {loss}: as the settings are"),
        ("expected", f"{error.error_name} {error_with_interval_text(error.protected)}"),
        ("unprotected", f"{error_with_interval_text(error.unprotected)}, for the same answers"),
        *([] if asked else [("warning", "`crowdveil campaign new` refuses these settings without --anyway.")]),
    ]
    return data, lines

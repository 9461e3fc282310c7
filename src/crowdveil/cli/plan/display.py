"""Plan on the terminal: findings, the commands to run next, and a table of all candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crowdveil.channels.rounding import format_bound
from crowdveil.cli.display import stdout_errors
from crowdveil.presentation.counts import number_of

if TYPE_CHECKING:
    from crowdveil.campaign.settings.settings_file import CampaignSettings
    from crowdveil.planning import Plan

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
    rows.append(("constant", f"{made.constant_error:.3g}, the best public one"))
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


@stdout_errors()
def print_candidates(made: Plan) -> None:
    """Print a table of the choices, equivalent ones once, and name these and the hidden columns below it."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    rows = _budget_rows(made) if made.by_budget else _candidate_rows(made)
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
    from crowdveil.planning.plan_sentences import expected_error_text, real_interval_text

    rows, shown = list[dict[str, str]](), None
    for one in made.results:
        if one.same_as is not None:
            continue
        epsilon, shown = format_bound(one.epsilon) if one.epsilon != shown else "", one.epsilon
        figures = {"error": expected_error_text(one.prediction, "<"), "real crowds": real_interval_text(one.prediction)}
        cost = {"per worker": format_bound(one.cost.worker_epsilon, 4), "bytes": f"{one.cost.bytes:,}"}
        rows.append({"epsilon": epsilon, "mechanism": one.name} | figures | cost)
    return rows


def _budget_rows(made: Plan) -> list[dict[str, str]]:
    """Return the best choice for each budget and participation, by column."""
    from crowdveil.planning.plan_sentences import expected_error_text, real_interval_text

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
            "real crowds": real_interval_text(one.prediction),
        }
        for one in made.results
    ]


def _equivalence_sentences(made: Plan) -> list[str]:
    """Return sentences on candidates with equivalent reports."""
    from crowdveil.planning.candidates import ORDINAL_SUFFIX

    epsilons: dict[tuple[str, str], list[str]] = {}
    for one in made.results:
        if one.same_as is not None and not one.name.endswith(ORDINAL_SUFFIX):
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
    return (
        f"{workers}; each worker answers {rate[0]:.3g} of the tasks ({rate[1]}), participation {hidden[0]} "
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
    from crowdveil.channels.rounding import format_three_decimals
    from crowdveil.planning.plan_sentences import error_with_interval_text
    from crowdveil.planning.settings.alternatives import is_worth_asking
    from crowdveil.planning.settings.chosen_mechanism import choose_mechanism
    from crowdveil.planning.settings.expected_error import predict_error

    chosen = choose_mechanism(source)
    mechanism, tasks = chosen.mechanism, chosen.most_tasks
    error = predict_error(chosen.source, mechanism, method=chosen.method)
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

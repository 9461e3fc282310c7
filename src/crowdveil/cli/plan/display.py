"""Plan on the terminal: findings, the commands to run next, and a table of all candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crowdveil.channels.rounding import format_bound
from crowdveil.cli.display import printing

if TYPE_CHECKING:
    from crowdveil.planning import CandidateResult, Plan

OPTIONAL_COLUMNS = {"per worker": 76, "bytes": 92}
"""Columns of the table that are shown from a terminal width on."""


def plan_lines(made: Plan, data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of a plan, as pairs of name and text; `data` is its JSON data."""
    from crowdveil.planning.summary import error_with_interval

    rows = [("assumed", assumption_text(data)), ("real crowds", data["real_sets"])]
    rows += [("plan", sentence) for sentence in data["verdict"]]
    if made.recommended is not None:
        rows += _command_lines(made.recommended, data)
    if data["merged_labels"] is not None:
        rows.append(("scale", merged_scale(data)))
    rows.append(("error", "share of wrong labels" if data["error_name"] == "error_rate" else "mean absolute error"))
    rows.append(("constant", f"{made.constant_error:.3g}, the best public one"))
    rows.append(("unprotected", f"{error_with_interval(made.unprotected)}, {made.unprotected_method}"))
    reported = f"{made.results[0].cost.cells:,} cells, participation {data['participation']}"
    rows.append(("per worker", f"{reported}; the table has the sum of their epsilon, and bytes at one symbol per task"))
    return rows


@printing()
def print_candidates(made: Plan) -> None:
    """Print a table of all candidates, equivalent ones once, and name these below it."""
    from rich.console import Console
    from rich.table import Table

    from crowdveil.planning.summary import expected_error, real_interval

    console = Console(highlight=False)
    optional = [name for name, width in OPTIONAL_COLUMNS.items() if console.width >= width]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    for name in ("epsilon", "mechanism"):
        table.add_column(name, overflow="fold")
    for name in ("error", "real crowds", *optional):
        table.add_column(name, justify="right")
    shown = None
    for one in made.results:
        if one.same_as is not None:
            continue
        epsilon, shown = format_bound(one.epsilon) if one.epsilon != shown else "", one.epsilon
        loss = format_bound(one.cost.worker_epsilon, 4)
        figures = expected_error(one.prediction, "<"), real_interval(one.prediction), loss, f"{one.cost.bytes:,}"
        table.add_row(epsilon, one.name, *figures[: 2 + len(optional)])
    console.print()
    console.print(table)
    hidden = " and ".join(name for name in OPTIONAL_COLUMNS if name not in optional)
    narrow = [f"A wider terminal, and --json, also show: {hidden}."] if hidden else []
    console.print()
    for sentence in _equivalent(made) + narrow:
        console.print(sentence)


def _equivalent(made: Plan) -> list[str]:
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


def merged_scale(data: dict[str, Any]) -> str:
    """Return how the labels of a long scale were merged."""
    labels = data["labels"]
    shown = f"{labels[0]}, {labels[1]}..{labels[-1]}"
    return (
        f"{data['merged_labels']:,} labels were merged to {len(labels)} to plan: {shown}; the plan holds for answers "
        "and a prior on that scale"
    )


def _command_lines(recommended: CandidateResult, data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of the recommended mechanism: its reports, and the commands to run."""
    found = data["recommended"]
    guarantee = f"epsilon {format_bound(found['epsilon_per_cell'])} per cell, participation {data['participation']}"
    rows = [("reports", f"{', '.join(found['reports'])}; {guarantee}")]
    return [*rows, *(("next", line) for line in data["commands"])]

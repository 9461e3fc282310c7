"""A plan on the terminal: findings, the commands to run next, and a table of all candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crowdveil.cli.display import printing
from crowdveil.rounding import bound_text

if TYPE_CHECKING:
    from crowdveil.planning import Plan, Row

COSTS = {"per worker": 76, "bytes": 92}
"""Columns of a terminal from which on the table shows what a worker spends, and sends."""
GUESSED = {"default": "a default guess", "given": "given"}
"""Words for where an assumption about the crowd comes from."""
SHOWN_COMMANDS = 6
"""Commands of a campaign in rounds up to its second: later rounds repeat them."""


def plan_lines(made: Plan, data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of a plan; `data` is its JSON object."""
    from crowdveil.planning.verdict import interval

    rows = [("assumed", sentence) for sentence in _assumed(data)]
    rows.append(("real crowds", data["real_sets"]))
    rows += [("plan", sentence) for sentence in data["verdict"]]
    if made.recommended is not None:
        rows += _commands(made.recommended, data)
    if data["merged_labels"] is not None:
        rows.append(("scale", _merged(data)))
    rows.append(("error", "share of wrong labels" if data["error_name"] == "error_rate" else "mean absolute error"))
    rows.append(("constant", f"{made.constant_error:.3g}, the best public one"))
    rows.append(("unprotected", f"{interval(made.unprotected)}, {made.unprotected_method}"))
    reported = f"{made.rows[0].cost.cells:,} cells, participation {data['participation']}"
    rows.append(("per worker", f"{reported}; the table adds up their epsilon, and bytes at one symbol per task"))
    return rows + [("written", path) for path in data["files"]]


@printing()
def print_candidates(made: Plan) -> None:
    """Print a table of all candidates, but of those that send the same only the first, and say which these are."""
    from rich.console import Console
    from rich.table import Table

    from crowdveil.planning.figures import expected_error, real_interval

    console = Console(highlight=False)
    costs = [name for name, columns in COSTS.items() if console.width >= columns]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    for name in ("epsilon", "mechanism"):
        table.add_column(name, overflow="fold")
    for name in ("error", "real crowds", *costs):
        table.add_column(name, justify="right")
    shown = None
    for row in made.rows:
        if row.same_as is not None:
            continue
        first, shown = bound_text(row.epsilon) if row.epsilon != shown else "", row.epsilon
        spent = bound_text(row.cost.worker_epsilon, 4)
        figures = expected_error(row.prediction, "<"), real_interval(row.prediction), spent, f"{row.cost.bytes:,}"
        table.add_row(first, row.line, *figures[: 2 + len(costs)])
    console.print()
    console.print(table)
    hidden = " and ".join(name for name in COSTS if name not in costs)
    narrow = [f"On a wider terminal, and with --json, there are columns: {hidden}."] if hidden else []
    console.print()
    for sentence in _same(made) + narrow:
        console.print(sentence)


def _same(made: Plan) -> list[str]:
    """Return which candidates send what others send, however they are read."""
    from crowdveil.planning.candidates import READ_IN_ORDER

    where: dict[tuple[str, str], list[str]] = {}
    for row in made.rows:
        if row.same_as is not None and not row.line.endswith(READ_IN_ORDER):
            where.setdefault((row.line, row.same_as), []).append(bound_text(row.epsilon))
    return [f"{line} sends the same as {other} at epsilon {', '.join(at)}." for (line, other), at in where.items()]


def _assumed(data: dict[str, Any]) -> list[str]:
    """Return what is taken for granted about workers, participation and truths, each with its source."""
    found = {one["name"]: (one["value"], GUESSED[one["source"]]) for one in data["assumptions"]}
    rate = found["participation_rate"]
    hidden = next(one["source"] for one in data["assumptions"] if one["name"] == "participation")
    if "ability" in found:
        low, high = data["worker_qualities"][0], data["worker_qualities"][-1]
        mean, source = found["ability"]
        workers = f"ability {mean:.3g} on average, {low:.2f} to {high:.2f} ({source})"
    else:
        sigmas, source = found["sigmas"]
        workers = f"normal errors of standard deviation {' and '.join(f'{one:.3g}' for one in sigmas)} ({source})"
    truths = "the prior of --prior" if data["prior_known_to_inference"] else "every label equally likely"
    return [
        f"{workers}; each worker answers {rate[0]:.3g} of the tasks ({rate[1]}), participation {data['participation']} "
        f"({hidden}); {truths} ({found['prior'][1]})."
    ]


def _merged(data: dict[str, Any]) -> str:
    """Return what a long scale was planned on."""
    labels = data["labels"]
    shown = f"{labels[0]}, {labels[1]}..{labels[-1]}"
    return (
        f"{data['merged_labels']:,} labels were merged to {len(labels)} to plan: {shown};"
        " answers and prior must be of that scale to have what is planned"
    )


def _commands(row: Row, data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines about the recommended mechanism: what is reported, and what to run."""
    found = data["recommended"]
    promise = f"epsilon {bound_text(found['epsilon_per_cell'])} per cell, participation {data['participation']}"
    later = "; later rounds: two blocks, by task" if row.campaign.rounds > 1 else ""
    commands, most = data["commands"], SHOWN_COMMANDS if row.campaign.rounds > 1 else len(data["commands"])
    rows = [("reports", f"{', '.join(found['reports'])}{later}; {promise}")]
    rows += [("next", line) for line in commands[:most]]
    if len(commands) > most:
        rows.append(("next", f"and so on, to round {row.campaign.rounds}: all commands are in plan.json and --json"))
    return rows

"""Plan by budgets per worker on the terminal and as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdveil.channels.rounding import format_bound
from crowdveil.cli.display import as_text, json_document, print_result, printing, progress_bar, replaced_rows

if TYPE_CHECKING:
    from crowdveil.channels.guarantee import Participation
    from crowdveil.planning import Campaign
    from crowdveil.planning.worker_budget import BudgetPlan
    from crowdveil.workflow.mechanism_settings import Expectation

FILE, PICTURES = "plan.json", ("plan.svg", "plan.png")
WIDE = 100
"""Width of a terminal from which the table has the intervals for real crowds."""


def run(
    campaign: Campaign,
    expected: Expectation,
    budgets: tuple[float, ...],
    *,
    target: float | None,
    participation_given: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Plan, write the files and print; see `plan`."""
    from crowdveil.files.atomic_write import Outputs, write_outputs
    from crowdveil.planning.worker_budget import plan_budgets
    from crowdveil.plotting import NO_PICTURES, has_matplotlib
    from crowdveil.workflow.budgets import budget_commands, budget_plan_data

    drawn = PICTURES if has_matplotlib() else ()
    outputs = None if out is None else Outputs(folder=out, names=(FILE, *drawn), kind="plan")
    replaced = [] if outputs is None else outputs.check(inputs=[expected.prior])
    participations: tuple[Participation, ...] = ("protected", "public")
    participations = (campaign.participation,) if participation_given else participations
    with progress_bar("simulating") as bar:
        made = plan_budgets(campaign, budgets, target=target, participations=participations, progress=bar)
    data = budget_plan_data(made, expected, participation_given=participation_given)
    least = made.least_budget
    data["commands"] = [] if least is None else budget_commands(least, expected, expected.prior)
    data["files"] = [] if outputs is None else list(map(str, outputs.paths))
    data["replaced"] = list(map(str, replaced))
    data["warnings"] = [] if outputs is None or drawn else [NO_PICTURES]
    if outputs is not None:
        write_outputs(outputs, {FILE: as_text(json_document(data)) + "\n", **(_pictures(made) if drawn else {})})
    print_result(data, [*_lines(made, data), *replaced_rows(data["replaced"])], as_json=as_json)
    if not as_json:
        _print_choices(made)


def _pictures(made: BudgetPlan) -> dict[str, bytes | str]:
    from crowdveil.planning.budget_summary import draw_budgets

    return {"plan.svg": draw_budgets(made, "svg"), "plan.png": draw_budgets(made, "png")}


def _lines(made: BudgetPlan, data: dict[str, Any]) -> list[tuple[str, str]]:
    from crowdveil.cli.plan.display import assumption_text
    from crowdveil.planning.summary import error_with_interval

    error = "share of wrong labels" if data["error_name"] == "error_rate" else "mean absolute error"
    return [
        *[("warning", text) for text in data["warnings"]],
        ("assumed", assumption_text(data)),
        *[("plan", sentence) for sentence in data["verdict"]],
        *[("next", line) for line in data["commands"]],
        ("error", error),
        ("constant", f"{made.constant_error:.3g}, the best public one"),
        ("unprotected", error_with_interval(made.unprotected)),
        ("budget", "epsilon of a worker: of all assigned tasks together, answered or not"),
        *[("written", path) for path in data["files"]],
    ]


@printing()
def _print_choices(made: BudgetPlan) -> None:
    """Print a table of the best choice for each budget and participation."""
    from rich.console import Console
    from rich.table import Table

    from crowdveil.planning.summary import expected_error, real_interval

    console = Console(highlight=False)
    wide = console.width >= WIDE
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    for name in ("budget", "participation", "tasks", "per answer", "mechanism"):
        table.add_column(name, overflow="fold")
    for name in ("error", "all tasks", *(("real crowds",) if wide else ())):
        table.add_column(name, justify="right")
    whole = {one.budget: expected_error(one.prediction, "<") for one in made.without_assignment}
    for one in made.chosen:
        table.add_row(
            f"{one.budget:g}",
            one.campaign.participation,
            f"{one.cells:,}",
            format_bound(one.cell_epsilon, 3),
            one.name,
            expected_error(one.prediction, "<"),
            whole[one.budget],
            *([real_interval(one.prediction)] if wide else []),
        )
    console.print()
    console.print(table)

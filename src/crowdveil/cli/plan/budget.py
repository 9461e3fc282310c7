"""Plan by budgets per worker: the best choice for each budget and participation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crowdveil.channels.rounding import format_bound
from crowdveil.cli.display import printing
from crowdveil.cli.plan.display import assumption_text, merged_scale
from crowdveil.cli.plan.request import PlanView

if TYPE_CHECKING:
    from crowdveil.channels.guarantee import Participation
    from crowdveil.cli.display import Bar
    from crowdveil.planning.worker_budget import BudgetPlan

WIDE = 100
"""Width of a terminal from which the table has the intervals for real crowds."""
BOTH: tuple[Participation, ...] = ("protected", "public")


class BudgetView(PlanView):
    """Plan by budgets per worker."""

    def run(self, bar: Bar | None) -> None:
        """Make the plan; both kinds of participation are compared unless one was stated."""
        from crowdveil.planning.worker_budget import plan_budgets

        request = self.request
        self.made = plan_budgets(
            request.campaign,
            request.values,
            target=request.target,
            participations=(request.campaign.participation,) if request.participation_given else BOTH,
            delta=request.delta,
            progress=bar,
        )

    def data(self) -> dict[str, Any]:
        """Return the plan as JSON data, with the commands of the least budget that meets the target."""
        from crowdveil.workflow.budgets import budget_commands, budget_plan_data

        request, least = self.request, self.made.least_budget
        data = budget_plan_data(self.made, request.expected, participation_given=request.participation_given)
        return data | {"commands": [] if least is None else budget_commands(least, request.expected, request.prior)}

    def picture(self, file_format: Any) -> bytes:
        """Return the figure of error against budget."""
        from crowdveil.planning.budget_summary import draw_budgets

        return draw_budgets(self.made, file_format)

    def lines(self, data: dict[str, Any]) -> list[tuple[str, str]]:
        """Return the findings, the commands and the best constant."""
        from crowdveil.planning.summary import error_with_interval

        made = self.made
        return [
            ("assumed", assumption_text(data)),
            *[("plan", sentence) for sentence in data["verdict"]],
            *[("next", line) for line in data["commands"]],
            *([] if data["merged_labels"] is None else [("scale", merged_scale(data))]),
            ("error", "share of wrong labels" if data["error_name"] == "error_rate" else "mean absolute error"),
            ("constant", f"{made.constant_error:.3g}, the best public one"),
            ("unprotected", f"{error_with_interval(made.unprotected)}, all tasks open to all workers"),
            ("budget", "epsilon of a worker: of all assigned tasks together, answered or not"),
        ]

    def print_table(self) -> None:
        """Print the choices."""
        _print_choices(self.made)


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

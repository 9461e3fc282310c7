"""Plan for a target error: all candidates at each epsilon per cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crowdveil.cli.plan.display import plan_lines, print_candidates
from crowdveil.cli.plan.request import PlanView

if TYPE_CHECKING:
    from crowdveil.cli.display import Bar


class TargetView(PlanView):
    """Plan for a target error."""

    def run(self, bar: Bar | None) -> None:
        """Make the plan."""
        from crowdveil import planning

        request = self.request
        assert request.target is not None
        epsilons = request.values or planning.EPSILONS
        self.made = planning.plan(request.campaign, target=request.target, epsilons=epsilons, progress=bar)

    def data(self) -> dict[str, Any]:
        """Return the plan as JSON data, with the commands of the recommendation."""
        from crowdveil.workflow.planning import next_commands, plan_data

        request, made = self.request, self.made
        data = plan_data(made, request.expected, participation_given=request.participation_given)
        found = made.recommended
        return data | {"commands": [] if found is None else next_commands(found, request.expected, request.prior)}

    def picture(self, file_format: Any) -> bytes:
        """Return the figure of error against epsilon."""
        from crowdveil.planning.summary import draw

        return draw(self.made, file_format)

    def lines(self, data: dict[str, Any]) -> list[tuple[str, str]]:
        """Return the findings, the commands and the best constant."""
        return plan_lines(self.made, data)

    def print_table(self) -> None:
        """Print all candidates."""
        print_candidates(self.made)

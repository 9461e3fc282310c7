"""Request of a plan, by epsilons per cell or budgets per worker, and its result: files, JSON document and text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdveil.cli.display import as_text, json_document, print_result, progress_bar, replaced_rows, warning_rows

if TYPE_CHECKING:
    from crowdveil.campaign.source.settings_file import CampaignSource
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.channels.guarantee import Participation
    from crowdveil.cli.display import Bar
    from crowdveil.planning import Campaign, Plan
    from crowdveil.privacy.mechanism_settings import Expectation

FILE, PICTURES = "plan.json", ("plan.svg", "plan.png")
PRIOR = "prior.csv"
"""File of the prior of merged labels."""
BOTH: tuple[Participation, ...] = ("protected", "public")


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """Request of a plan.

    Attributes:
        campaign: to be planned; a long scale was replaced by a coarser one.
        expected: public expectation of the answers.
        alphabet: as requested.
        target: error wanted; None if none was given.
        by_budget: whether `values` are budgets per worker, not epsilons per cell.
        values: these epsilons; empty for the default.
        participation_given: whether participation was stated.
        out: folder of the files; None for none.
        delta: at which budgets hold; None for the sum of epsilons.
        settings: settings of a campaign; None for none.
    """

    campaign: Campaign
    expected: Expectation
    alphabet: Alphabet
    target: float | None
    by_budget: bool
    values: tuple[float, ...]
    participation_given: bool
    out: Path | None
    delta: float | None = None
    settings: CampaignSource | None = None

    @property
    def merged(self) -> bool:
        """Whether labels of a long scale were merged."""
        return self.campaign.crowd.alphabet != self.alphabet

    @property
    def writes_prior(self) -> bool:
        """Whether the prior of the merged labels is written."""
        return self.merged and self.expected.prior_file is not None

    @property
    def prior(self) -> Path | None:
        """File with the prior of the planned labels; None if inference learns it."""
        return self.out / PRIOR if self.out is not None and self.writes_prior else self.expected.prior_file


def carry_out(request: PlanRequest, *, as_json: bool) -> None:
    """Plan, write the files, and print the result."""
    from crowdveil.cli.plan.display import plan_lines, print_candidates
    from crowdveil.figures import NO_PICTURES, has_matplotlib
    from crowdveil.files.atomic_write import Outputs, write_outputs
    from crowdveil.planning.next_commands import next_commands
    from crowdveil.planning.plan_document import plan_data, prior_csv
    from crowdveil.planning.summary import draw

    drawn = PICTURES if has_matplotlib() else ()
    names = (FILE, *drawn, *((PRIOR,) if request.writes_prior else ()))
    outputs = None if request.out is None else Outputs(folder=request.out, names=names, kind="plan", remove_stale=True)
    replaced = [] if outputs is None else outputs.check(inputs=[request.expected.prior_file])
    with progress_bar("simulating") as bar:
        made = _planned(request, bar)
    data = plan_data(made, request.expected, participation_given=request.participation_given)
    stated = list[tuple[str, str]]()
    found = made.recommended
    data["commands"] = [] if found is None else next_commands(found, request.expected, request.prior)
    if request.settings is not None:
        data["campaign"], stated = _as_stated(request.settings)
    data["merged_labels"] = request.alphabet.size if request.merged else None
    data["files"] = [] if outputs is None else list(map(str, outputs.paths))
    data["replaced"] = list(map(str, replaced))
    data["warnings"] = [] if outputs is None or drawn else [NO_PICTURES]
    if outputs is not None:
        pictures = {name: draw(made, "png" if name.endswith("png") else "svg") for name in drawn}
        prior = prior_csv(request.campaign.crowd)
        write_outputs(outputs, {FILE: as_text(json_document(data)) + "\n", PRIOR: prior, **pictures})
    written = [("written", path) for path in data["files"]]
    rows = [*warning_rows(data), *stated, *plan_lines(made, data), *written, *replaced_rows(data["replaced"])]
    print_result(data, rows, as_json=as_json)
    if not as_json:
        print_candidates(made)


def _planned(request: PlanRequest, bar: Bar | None) -> Plan:
    """Return the plan; by budgets, both kinds of participation are compared unless one was stated."""
    from crowdveil import planning

    if not request.by_budget:
        from crowdveil.planning.settings.alternatives import WORTH_ASKING

        usual = WORTH_ASKING * request.campaign.crowd.constant_error
        target, epsilons = usual if request.target is None else request.target, request.values or planning.EPSILONS
        return planning.plan(request.campaign, target=target, epsilons=epsilons, progress=bar)
    return planning.plan_budgets(
        request.campaign,
        request.values,
        target=request.target,
        participations=(request.campaign.participation,) if request.participation_given else BOTH,
        delta=request.delta,
        progress=bar,
    )


def _as_stated(source: CampaignSource) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the expected error of a campaign as its settings are, as JSON data and as lines."""
    from crowdveil.channels.rounding import format_promise
    from crowdveil.planning.settings.alternatives import is_worth_asking
    from crowdveil.planning.settings.chosen_mechanism import choose_mechanism
    from crowdveil.planning.settings.expected_error import predict_error
    from crowdveil.planning.summary import error_with_interval

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
        f"epsilon {format_promise(all_tasks.epsilon)} per worker, {format_promise(cell.epsilon)} per answer, "
        f"participation {cell.participation}{', every worker at level 1' if source.privacy.levels else ''}"
    )
    lines = [
        ("campaign", f"{mechanism.name}, {tasks:,} task{'s' * (tasks > 1)} per worker, {loss}: as the settings are"),
        ("expected", f"{error.error_name} {error_with_interval(error.protected)}"),
        ("unprotected", f"{error_with_interval(error.unprotected)}, for the same answers"),
        *([] if asked else [("warning", "`crowdveil campaign new` refuses these settings without --anyway.")]),
    ]
    return data, lines

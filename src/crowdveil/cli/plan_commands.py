"""Command lines that carry out a campaign with a candidate of a plan."""

import shlex
from pathlib import Path

from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.design.mechanism_from_settings import Expectation
from crowdveil.files.csv_rows import csv_row
from crowdveil.mechanisms import Designed, QuantizedResponse
from crowdveil.planning.campaign import PlannedCampaign
from crowdveil.planning.plan import PlanRow
from crowdveil.planning.population import NumberCrowd

TASK_OPTION = ("--tasks", "tasks.csv")


def next_commands(result: PlanRow, expected: Expectation, prior: str | None) -> list[str]:
    """Return the command lines that carry out a campaign with a candidate.

    Args:
        result: the candidate.
        expected: public expectation; without sigmas, those of the campaign are used.
        prior: file with the prior of the planned labels; None if inference learns it.
    """
    mechanism = _mechanism_options(result, expected, prior)
    infer = [
        "--method",
        result.campaign.estimator_of_simulated_fits.name,
        *([] if prior is None else ["--prior", prior]),
    ]
    lines = _campaign_commands(result.campaign, mechanism, infer)
    return [shlex.join(["crowdveil", *line]) for line in lines]


def campaign_command(settings: Path) -> str:
    """Return the command line that makes the campaign of a settings file."""
    return shlex.join(["crowdveil", "campaign", "new", str(settings), "--out", settings.stem + "-asked"])


def _campaign_commands(campaign: PlannedCampaign, mechanism: list[str], infer: list[str]) -> list[list[str]]:
    lists = [*TASK_OPTION, "--workers", "workers.csv"]
    assign, assignment = list[list[str]](), list[str]()
    if campaign.assigned_per_task is not None:
        assign = [["data", "assign", *lists, "--per-task", str(campaign.assigned_per_task), "--out", "asked.csv"]]
        assignment = ["--assignment", "asked.csv"]
    perturb = ["perturb", "answers.csv", *lists, *assignment, *mechanism, "--out", "sent"]
    return [*assign, perturb, ["infer", "sent/reports.csv", *infer, "--out", "found"]]


def _mechanism_options(result: PlanRow, expected: Expectation, prior: str | None) -> list[str]:
    """Return the options of a candidate's mechanism."""
    mechanism, chosen = result.mechanism, list[str]()
    if isinstance(mechanism, QuantizedResponse) and mechanism.cuts:
        chosen = ["--cuts", csv_row(mechanism.alphabet.names[cut] for cut in mechanism.cuts)]
    elif isinstance(mechanism, QuantizedResponse | Designed):
        chosen = _expectation_options(result.campaign, expected, prior)
    return ["--mechanism", mechanism.name, *chosen, *_privacy_options(result)]


def _expectation_options(campaign: PlannedCampaign, expected: Expectation, prior: str | None) -> list[str]:
    options = ["--participation-rate", f"{campaign.answered_cell_share:.12g}"]
    if prior is not None:
        options += ["--prior", prior]
    if isinstance(campaign.crowd, NumberCrowd):
        return [*options, "--sigmas", ",".join(f"{sigma:.12g}" for sigma in campaign.crowd.sigmas)]
    mistakes = campaign.shared_mistakes
    ability = expected.ability if mistakes is None else mistakes.pilot.ability
    return options if ability is None else [*options, "--ability", f"{ability:.12g}"]


def _privacy_options(result: PlanRow) -> list[str]:
    """Return the options of epsilon, alphabet, and public participation."""
    public = ["--participation", "public"] if result.campaign.participation == "public" else []
    return ["--epsilon", f"{result.epsilon:.12g}", *_alphabet_options(result.campaign.crowd.alphabet), *public]


def _alphabet_options(alphabet: Alphabet) -> list[str]:
    if isinstance(alphabet, Scale):
        step = "" if alphabet.step == 1 else f":{alphabet.step:.12g}"
        return ["--scale", f"{alphabet.low:.12g}:{alphabet.high:.12g}{step}"]
    return ["--labels", csv_row(alphabet.names), *(["--ordered"] if alphabet.ordered else [])]

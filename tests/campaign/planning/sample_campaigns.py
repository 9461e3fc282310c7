"""Sample of the documents and template of `campaign init`, with crowds simulated from seeds that no plan uses."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from crowdveil import Gaussian, HierarchicalDawidSkene, Scale
from crowdveil.answers.assignment import Assignment
from crowdveil.campaign.planning.chosen_mechanism import mechanism_of_campaign_settings
from crowdveil.campaign.planning.creation import write_template
from crowdveil.campaign.planning.expected_error import planned_campaign
from crowdveil.campaign.settings.build import build_campaign
from crowdveil.campaign.settings.privacy_request import PrivacyRequest
from crowdveil.campaign.settings.settings_file import CampaignSettings, read_settings
from crowdveil.channels.channel import Channel
from crowdveil.inference.scores.metrics import score
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells

SETTINGS = Path(__file__).parents[3] / "docs" / "samples" / "campaign.toml"
FIRST_SEED = 1_000


def sample() -> CampaignSettings:
    """Return the settings of the sample."""
    return read_settings(SETTINGS)


def former_sample() -> CampaignSettings:
    """Return the settings of the sample before plans could be asked: twelve students, five essays each, laplace."""
    source = sample()
    return replace(
        source,
        slots=12,
        names=source.names[:12],
        excluded=source.excluded[:12],
        per_worker=5,
        privacy=PrivacyRequest(mechanism="laplace", budget_per_worker=5.0),
    )


def template(tasks: int) -> CampaignSettings:
    """Return the settings of the template with some tasks."""
    with TemporaryDirectory() as folder:
        rows = "".join(f"task-{number},Is it so?\n" for number in range(tasks))
        (Path(folder) / "tasks.csv").write_text("id,text\n" + rows, "utf-8")
        write_template(Path(folder) / "campaign.toml")
        return read_settings(Path(folder) / "campaign.toml")


def simulated_errors(source: CampaignSettings, runs: int) -> np.ndarray:
    """Return the errors of the results and of the best constant, shape (runs, 2): absolute, or shares of wrong labels.

    Every run has a crowd as the settings expect, its own assignment, and its own reports.
    """
    chosen = mechanism_of_campaign_settings(source)
    found = []
    for seed in range(FIRST_SEED, FIRST_SEED + runs):
        _, parts, (mechanism,) = build_campaign(chosen.source, seeded(seed + 1_000_000), build=chosen.build)
        lists = [part for document in parts for part in document.lists]
        found.append(_errors(chosen.source, lists, mechanism.channel(), seed))
    return np.array(found)


def _errors(source: CampaignSettings, lists: list[tuple[int, ...]], channel: Channel, seed: int) -> tuple[float, float]:
    """Return the errors of one run: of the inferred truths, and of the constant."""
    campaign = planned_campaign(source)
    crowd = campaign.crowd.simulate(
        workers=campaign.workers,
        tasks=campaign.tasks,
        rate=campaign.answered_cell_share,
        source=seeded(seed),
    )
    answers = crowd.answers
    task = np.concatenate([np.array(own, dtype=np.int64) for own in lists])
    worker = np.repeat(np.arange(len(lists)), [len(own) for own in lists])
    assignment = Assignment(np.asarray(answers.tasks), np.asarray(answers.workers), task, worker)
    asked = np.zeros((len(answers.tasks), len(answers.workers)), dtype=bool)
    asked[task, worker] = True
    kept = asked[answers.task, answers.worker]
    given = replace(answers, task=answers.task[kept], worker=answers.worker[kept], value=answers.value[kept])
    reports = perturb_cells(given, channel, seeded(seed + 10_000), assignment=assignment)
    numbers = isinstance(source.alphabet, Scale)
    method = Gaussian() if numbers else HierarchicalDawidSkene()
    estimate = method.fit(reports, channel=channel, assignment=assignment)
    truths = list(crowd.gold.values())
    if not numbers:
        return score(estimate, crowd.gold).error, 1 - max(map(truths.count, truths)) / len(truths)
    constant = np.median(campaign.crowd.alphabet.values)
    return score(estimate, crowd.gold).error, float(np.abs(np.array(truths, dtype=float) - constant).mean())

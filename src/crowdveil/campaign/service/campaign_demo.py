"""Demo of a campaign: 72 simulated workers judge twelve statements whose truth is known.

The answers are simulated, and the page says so. Service, devices, closing and inference are the real ones: each device
fetches the campaign over HTTP, checks it, draws its report with secure randomness and sends it once.
"""

from __future__ import annotations

import csv
import io
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.facts.inputs import inputs_to_json
from crowdveil.answers.reports import Reports
from crowdveil.campaign.device import SealingDevice
from crowdveil.campaign.files.folder import CAMPAIGN_FILE, LINKS_FILE
from crowdveil.campaign.files.invitations import write_first_links
from crowdveil.campaign.pages.results import DOWNLOADS, PAGE_FILE, CampaignResult, ResultCache
from crowdveil.campaign.planning.creation import write_new_campaign_folder
from crowdveil.campaign.rules.assemble import CampaignContent, assemble_campaign
from crowdveil.campaign.rules.document import Campaign, Task
from crowdveil.campaign.service.campaign_registration import register_campaign_in_database
from crowdveil.campaign.service.server import ServerSettings, address_of, open_listening_socket, run
from crowdveil.campaign.service.store import Store, today_utc
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.certificate import refusals_as
from crowdveil.errors import DeviceError
from crowdveil.estimators.dawid_skene import DawidSkene
from crowdveil.files.atomic_write import Outputs, write_outputs
from crowdveil.files.filesystem import temporary_folder
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.storage.estimate_files import DEMO, estimate_outputs, page_outputs

WORKERS, TASKS_PER_WORKER = 72, 5
BUDGET_PER_WORKER = 5.0
MIN_REPORTS = 30
ABILITY, ANSWERED = 0.85, 0.9
"""Probabilities that a simulated worker knows the answer, and that it answers at all."""
DEVICES_AT_ONCE = 8
LABELS = ("true", "false")
Answers = Mapping[int, str]
"""Label of each answered task of one worker, by task index."""
Progress = Callable[[int, int], None]
STATEMENTS = (
    "A day on Venus is longer than its year.",
    "Goldfish forget everything after three seconds.",
    "Honey that was kept dry stays edible for centuries.",
    "Lightning never strikes the same place twice.",
    "Bananas are berries, and strawberries are not.",
    "The Great Wall of China is visible from the Moon.",
    "Octopuses have three hearts.",
    "Bats are blind.",
    "Oxford University is older than the Aztec Empire.",
    "People use only a tenth of their brain.",
    "Water can boil and freeze at the same time.",
    "Bulls become angry when they see red.",
)
"""True statements on even places, false ones on odd places."""


@dataclass(frozen=True, kw_only=True)
class CampaignDemo:
    """Outcome of the demo.

    Attributes:
        campaign: the campaign.
        result: its files, statement of privacy and warnings.
        page: path of the page of results.
        wrong: numbers of wrong truths: inferred from reports, inferred from the answers, and of the best constant.
    """

    campaign: Campaign
    result: CampaignResult
    page: Path
    wrong: tuple[int, int, int]


def demo_outputs(out: Path) -> tuple[Outputs, Outputs]:
    """Return the files of the demo as outputs: the page of results, and all others."""
    others = tuple(name for name in DOWNLOADS if name != PAGE_FILE)
    estimates = estimate_outputs(out).also_replaced
    return page_outputs(out / PAGE_FILE), Outputs(folder=out, names=others, kind=DEMO, also_replaced=estimates)


def run_campaign_demo(out: Path, *, seed: int = 1, progress: Progress | None = None) -> CampaignDemo:
    """Run a campaign from its making to its results, and write the results.

    Args:
        out: folder of the results.
        seed: seed of the simulated answers; reports are drawn with secure randomness.
        progress: called with the number of workers that reported, and that of all workers.

    Raises:
        SettingsError: the folder holds other files of these names, or no port is free.
        DeviceError: a device refused the campaign, or the service its report.
    """
    for outputs in demo_outputs(out):
        outputs.check_replaced_files()
    # Every statement is assigned to 30 workers.
    count = len(STATEMENTS)
    assigned = [sorted((slot + step) % count for step in range(TASKS_PER_WORKER)) for slot in range(WORKERS)]
    answers = simulate_answers(assigned, seed)
    campaign, result = run_on_loopback(open_demo_content(), assigned, answers, progress)
    inputs = inputs_to_json(result.inputs)
    for outputs in demo_outputs(out):
        write_outputs(replace(outputs, reports_sha256=result.reports_sha256, inputs=inputs), result.files)
    wrong = _wrong_truth_counts(answers, result.files["truths.csv"])
    return CampaignDemo(campaign=campaign, result=result, page=out / PAGE_FILE, wrong=wrong)


def run_on_loopback(
    content: CampaignContent,
    assigned: Sequence[Sequence[int]],
    answers: Sequence[Answers],
    progress: Progress | None = None,
) -> tuple[Campaign, CampaignResult]:
    """Make a campaign, serve it, have every worker report, close it and infer; nothing is left on disk."""
    with temporary_folder(Path(gettempdir())) as temporary:
        folder = temporary / "campaign"
        settings = ServerSettings(database=f"sqlite:///{temporary}/reports.sqlite", port=0)
        listening = open_listening_socket(settings)
        campaign, parts = assemble_campaign(replace(content, url=address_of(settings, listening)), assigned)
        write_new_campaign_folder(folder, campaign, parts)
        write_first_links(folder)
        register_campaign_in_database(settings.database, folder / CAMPAIGN_FILE)
        with _served(settings, listening):
            _report_all(folder / LINKS_FILE, assigned, answers, progress)
        store = Store.open(settings.database)
        try:
            store.close_and_count_reports(campaign.digest)
            return campaign, ResultCache(store).get(campaign.digest)
        finally:
            store.close()


@contextmanager
def _served(settings: ServerSettings, listening: Any) -> Iterator[None]:
    """Context in which the service runs in a process of its own."""
    process = multiprocessing.get_context("spawn").Process(target=run, args=(settings, listening))
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()
        listening.close()


def _report_all(
    links: Path, assigned: Sequence[Sequence[int]], answers: Sequence[Answers], progress: Progress | None
) -> None:
    """Have every worker answer on a device with a folder of its own, and send the report."""
    sent_to = [row["link"] for row in csv.DictReader(links.read_text("utf-8").splitlines())]

    def report(slot: int) -> None:
        home = links.parent.parent / "devices" / str(slot)
        with refusals_as(DeviceError), SealingDevice(sent_to[slot], home) as device:
            device.open()
            device.require_open()
            for cell, task in enumerate(assigned[slot]):
                if task in answers[slot]:
                    device.answer(cell, answers[slot][task])
            device.sample()
            device.send()

    with ThreadPoolExecutor(DEVICES_AT_ONCE) as pool:
        for done, _ in enumerate(pool.map(report, range(len(sent_to))), start=1):
            if progress is not None:
                progress(done, len(sent_to))


def open_demo_content() -> CampaignContent:
    """Return the campaign of the demo, which is open today."""
    mechanism = RandomizedResponse(alphabet=Categories(LABELS), epsilon=BUDGET_PER_WORKER / TASKS_PER_WORKER)
    today = today_utc()
    return CampaignContent(
        title="True or false? (demo with simulated answers)",
        question="Is this statement true?",
        consent="This is a demo. Its answers are simulated, and randomized on each device like real ones.",
        language="en",
        opens=today - timedelta(days=1),
        closes=today + timedelta(days=1),
        min_reports=MIN_REPORTS,
        channels=(mechanism.channel(),),
        tasks=tuple(Task(f"statement-{number:02}", text) for number, text in enumerate(STATEMENTS, start=1)),
    )


def true_labels() -> NDArray[np.int64]:
    """Return the code of each statement's true label, shape (tasks,)."""
    return np.arange(len(STATEMENTS)) % len(LABELS)


def simulate_answers(assigned: Sequence[Sequence[int]], seed: int) -> list[Answers]:
    """Return the answers of each slot."""
    generator, truth = np.random.default_rng(seed), true_labels()
    answers: list[Answers] = []
    for tasks in assigned:
        right, given = generator.random(len(tasks)) < ABILITY, generator.random(len(tasks)) < ANSWERED
        labels = np.where(right, truth[list(tasks)], 1 - truth[list(tasks)])
        answers.append({task: LABELS[labels[cell]] for cell, task in enumerate(tasks) if given[cell]})
    return answers


def _wrong_truth_counts(answers: Sequence[Answers], truths: bytes) -> tuple[int, int, int]:
    """Return the numbers of wrong truths: inferred from reports, from the answers, and of the best constant."""
    truth = true_labels()
    rows = [(task, slot, LABELS.index(label)) for slot, own in enumerate(answers) for task, label in own.items()]
    task, worker, label = np.array(rows).T
    plain = Reports(task, worker, label, np.arange(len(truth)), np.arange(len(answers)), Categories(LABELS))
    unprotected = DawidSkene().fit(plain).posterior.argmax(axis=1)
    texts = csv.DictReader(io.StringIO(truths.decode("utf-8")))
    inferred = np.array([LABELS.index(row["truth"]) for row in texts])
    constant = len(truth) - np.bincount(truth).max()
    return int((inferred != truth).sum()), int((unprotected != truth).sum()), int(constant)

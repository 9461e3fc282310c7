"""Demo of a whole campaign on this computer: service on the loopback address, 72 simulated workers, results.

The answers are simulated. Everything else is as with real people: each device fetches the campaign over HTTP, checks
it, draws its report with secure randomness and sends it once; a headless browser is one of the devices where there is
one. The truths are known, so that the error of the inferred ones is known.
"""

from __future__ import annotations

import csv
import io
import multiprocessing
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.campaign.assembly import Content, assemble
from crowdveil.campaign.assignment_part import AssignmentPart
from crowdveil.campaign.device import Device
from crowdveil.campaign.document import Campaign, Task
from crowdveil.campaign.folder import CAMPAIGN_FILE, PARTS_FOLDER, TOKENS_FILE, TokenEntry, tokens_bytes
from crowdveil.campaign.token import Link, Token, token_hash
from crowdveil.channels.alphabet import Categories
from crowdveil.data.reports import Reports
from crowdveil.estimators import DawidSkene
from crowdveil.files.atomic_write import Outputs, write_outputs
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.service.registration import prepare_database
from crowdveil.service.results import DOWNLOADS, PAGE_FILE, CampaignResult, Results
from crowdveil.service.server import ServerSettings, bind, run
from crowdveil.service.store import Store, today_utc

WORKERS, TASKS, TASKS_PER_WORKER = 72, 12, 5
BUDGET_PER_WORKER = 5.0
ABILITY, ANSWERED = 0.85, 0.9
"""Probabilities that a simulated worker knows the answer, and that it answers at all."""
MIN_REPORTS = 30
LABELS = ("true", "false")
QUESTION = "Is this statement true?"
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
DEVICES_AT_ONCE = 8
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PLAYWRIGHT = "playwright.sync_api"
SCREEN_MILLISECONDS = 20_000
Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class CampaignDemo:
    """Outcome of the demo.

    Attributes:
        campaign: the campaign.
        result: files and statement of privacy.
        page: path of the page of results.
        by_browser: number of workers who answered in a browser.
        wrong: number of inferred truths that are wrong; of those inferred from the answers; of the best constant.
    """

    campaign: Campaign
    result: CampaignResult
    page: Path
    by_browser: int
    wrong: tuple[int, int, int]


def demo_outputs(out: Path) -> Outputs:
    """Return the files of the demo as outputs."""
    return Outputs(folder=out, names=tuple(DOWNLOADS), kind="campaign demo")


def run_campaign_demo(out: Path, *, seed: int = 1, progress: Progress | None = None) -> CampaignDemo:
    """Run a campaign from its making to its results, and write the results.

    Args:
        out: folder of the results.
        seed: seed of the simulated answers; reports are drawn with secure randomness.
        progress: called with the number of workers that reported, and that of all workers.

    Raises:
        SettingsError: the folder holds other files of these names, or no port is free.
        DeviceError: a device refused the campaign.
    """
    outputs = demo_outputs(out)
    outputs.check()
    with TemporaryDirectory(prefix="crowdveil-demo-") as temporary:
        folder = Path(temporary)
        database = f"sqlite:///{folder / 'reports.sqlite'}"
        settings = ServerSettings(database=database, port=0)
        listening = bind(settings)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        campaign, parts, links = make_campaign(folder, url)
        prepare_database(database, folder / CAMPAIGN_FILE)
        assigned = [tasks for part in parts for tasks in part.lists]
        answers = simulate_answers(assigned, seed)
        with _served(settings, listening):
            by_browser = _report_all(links, assigned, answers, folder, progress)
        store = Store.open(database)
        try:
            store.close_campaign(campaign.digest)
            result = Results(store).compute(campaign.digest)
        finally:
            store.close()
    write_outputs(outputs, result.files)
    return CampaignDemo(
        campaign=campaign,
        result=result,
        page=out / PAGE_FILE,
        by_browser=by_browser,
        wrong=_wrong(answers, result.files["truths.csv"]),
    )


def make_campaign(folder: Path, url: str) -> tuple[Campaign, tuple[AssignmentPart, ...], list[Link]]:
    """Write the campaign and the hashes of its tokens into a folder; return the campaign, its parts and the links."""
    alphabet = Categories(LABELS)
    channel = RandomizedResponse(alphabet=alphabet, epsilon=BUDGET_PER_WORKER / TASKS_PER_WORKER).channel()
    today = today_utc()
    content = Content(
        title="True or false? (demo with simulated answers)",
        question=QUESTION,
        consent="This is a demo. Its answers are simulated; they are randomized on each device like real ones.",
        language="en",
        opens=today - timedelta(days=1),
        closes=today + timedelta(days=1),
        min_reports=MIN_REPORTS,
        channels=(channel,),
        tasks=tuple(Task(f"statement-{number + 1:02}", text) for number, text in enumerate(STATEMENTS)),
        url=url,
    )
    # A cyclic assignment: every statement is assigned to 30 workers.
    campaign, parts = assemble(
        content, [sorted((slot + step) % TASKS for step in range(TASKS_PER_WORKER)) for slot in range(WORKERS)]
    )
    tokens = [Token.new(slot) for slot in range(WORKERS)]
    entries = [TokenEntry(token.slot, token_hash(campaign.digest, token)) for token in tokens]
    (folder / PARTS_FOLDER).mkdir()
    (folder / CAMPAIGN_FILE).write_bytes(campaign.to_bytes())
    (folder / TOKENS_FILE).write_bytes(tokens_bytes(entries, campaign))
    for number, part in enumerate(parts):
        (folder / PARTS_FOLDER / f"{number:04}.json").write_bytes(part.to_bytes())
    return campaign, parts, [Link(url, campaign.name, token) for token in tokens]


def true_labels() -> NDArray[np.int64]:
    """Return the true label of each statement, shape (tasks,): every second one is false."""
    return np.arange(TASKS) % len(LABELS)


def simulate_answers(assigned: Sequence[Sequence[int]], seed: int) -> list[dict[int, str]]:
    """Return the label of each answered task of each worker, by task index."""
    generator, truth = np.random.default_rng(seed), true_labels()
    answers: list[dict[int, str]] = []
    for tasks in assigned:
        right = generator.random(len(tasks)) < ABILITY
        given = generator.random(len(tasks)) < ANSWERED
        labels = np.where(right, truth[list(tasks)], 1 - truth[list(tasks)])
        answers.append({task: LABELS[labels[cell]] for cell, task in enumerate(tasks) if given[cell]})
    return answers


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
    links: Sequence[Link],
    assigned: Sequence[Sequence[int]],
    answers: Sequence[dict[int, str]],
    folder: Path,
    progress: Progress | None,
) -> int:
    """Have every worker report, the first one in a browser where there is one; return how many used a browser."""
    in_browser = find_browser()

    def report(slot: int) -> None:
        if slot == 0 and in_browser:
            _report_in_browser(in_browser, links[slot], assigned[slot], answers[slot])
            return
        with Device(links[slot].text, folder / "devices" / str(slot)) as device:
            device.open()
            device.require_open()
            for cell, task in enumerate(assigned[slot]):
                if task in answers[slot]:
                    device.answer(cell, answers[slot][task])
            device.sample()
            device.send()

    with ThreadPoolExecutor(DEVICES_AT_ONCE) as pool:
        for done, _ in enumerate(pool.map(report, range(len(links))), start=1):
            if progress is not None:
                progress(done, len(links))
    return int(bool(in_browser))


def find_browser() -> str:
    """Return the path of a browser that Playwright can drive; empty without Playwright, browser or worker's page."""
    page = files("crowdveil.service") / "static" / "index.html"
    if find_spec("playwright") is None or not page.is_file():
        return ""
    return next(filter(None, map(shutil.which, BROWSERS)), "")


def _report_in_browser(browser: str, link: Link, tasks: Sequence[int], answers: dict[int, str]) -> None:
    """Answer by clicking on the worker's page, and wait until the service has confirmed the report."""
    with import_module(PLAYWRIGHT).sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = running.new_page()
        page.set_default_timeout(SCREEN_MILLISECONDS)
        page.goto(link.text)
        page.click("#start")
        page.wait_for_selector("#tasks:not([hidden])")
        for cell, task in enumerate(tasks):
            if task in answers:
                page.locator("#task-list fieldset").nth(cell).get_by_text(answers[task], exact=True).click()
        page.click("#task-form button.primary")
        page.click("#send")
        page.wait_for_selector("#done:not([hidden])")
        running.close()


def _wrong(answers: Sequence[dict[int, str]], truths: bytes) -> tuple[int, int, int]:
    """Return the numbers of wrong truths: inferred from reports, from the answers, and of the best constant."""
    truth = true_labels()
    rows = [(task, slot, LABELS.index(label)) for slot, own in enumerate(answers) for task, label in own.items()]
    task, worker, label = np.array(rows).T
    plain = Reports(task, worker, label, np.arange(TASKS), np.arange(len(answers)), Categories(LABELS))
    unprotected = DawidSkene().fit(plain).posterior.argmax(axis=1)
    texts = csv.DictReader(io.StringIO(truths.decode("utf-8")))
    inferred = np.array([LABELS.index(row["truth"]) for row in texts])
    constant = TASKS - np.bincount(truth).max()
    return int((inferred != truth).sum()), int((unprotected != truth).sum()), int(constant)

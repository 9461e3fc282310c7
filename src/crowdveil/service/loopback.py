"""Whole campaigns on this computer, from simulated answers: service on the loopback address, devices, results.

Only the answers are simulated. Each device fetches the campaign over HTTP, checks it, draws its report with secure
randomness and sends it once; the first worker uses a headless browser where there is one.
"""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crowdveil.campaign.assembly import Content, assemble
from crowdveil.campaign.device import Device, refusals
from crowdveil.campaign.document import Campaign
from crowdveil.campaign.folder import CAMPAIGN_FILE, PARTS_FOLDER, TOKENS_FILE, TokenEntry, tokens_bytes
from crowdveil.campaign.token import Link, Token, token_hash
from crowdveil.service.curator.results import CampaignResult, Results
from crowdveil.service.registration import prepare_database
from crowdveil.service.server import ServerSettings, bind, run
from crowdveil.service.store import Store

DEVICES_AT_ONCE = 8
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PLAYWRIGHT = "playwright.sync_api"
SCREEN_MILLISECONDS = 20_000
Answers = Mapping[int, str]
"""Label of each answered task of one worker, by task index."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class LoopbackRun:
    """Outcome of a campaign.

    Attributes:
        campaign: the campaign.
        result: files, statement of privacy and warnings.
        by_browser: number of workers who answered in a browser.
    """

    campaign: Campaign
    result: CampaignResult
    by_browser: int


def run_on_loopback(
    content: Content,
    assigned: Sequence[Sequence[int]],
    answers: Sequence[Answers],
    *,
    progress: Progress | None = None,
) -> LoopbackRun:
    """Make a campaign, serve it, have every worker report, close it and infer; nothing is left on disk.

    Args:
        content: the campaign; `url` is filled in.
        assigned: task indices of each slot, ascending.
        answers: answers of each slot.
        progress: called with the number of workers that reported, and that of all workers.

    Raises:
        SettingsError: no port is free, or fewer workers than `min_reports`.
        DeviceError: a device refused the campaign, or the service its report.
    """
    with TemporaryDirectory(prefix="crowdveil-campaign-") as temporary:
        folder = Path(temporary)
        database = f"sqlite:///{folder / 'reports.sqlite'}"
        settings = ServerSettings(database=database, port=0)
        listening = bind(settings)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        campaign, links = _write_campaign(replace(content, url=url), assigned, folder)
        prepare_database(database, folder / CAMPAIGN_FILE)
        with _served(settings, listening):
            by_browser = _report_all(links, assigned, answers, folder / "devices", progress)
        store = Store.open(database)
        try:
            store.close_campaign(campaign.digest)
            result = Results(store).compute(campaign.digest)
        finally:
            store.close()
    return LoopbackRun(campaign=campaign, result=result, by_browser=by_browser)


def find_browser() -> str:
    """Return the path of a browser that Playwright can drive; empty without Playwright, browser or worker's page."""
    page = files("crowdveil.service") / "static" / "index.html"
    if find_spec("playwright") is None or not page.is_file():
        return ""
    return next(filter(None, map(shutil.which, BROWSERS)), "")


def _write_campaign(content: Content, assigned: Sequence[Sequence[int]], folder: Path) -> tuple[Campaign, list[Link]]:
    """Write the campaign and the hashes of its tokens into a folder; return the campaign and its links."""
    campaign, parts = assemble(content, assigned)
    tokens = [Token.new(slot) for slot in range(campaign.slots)]
    entries = [TokenEntry(token.slot, token_hash(campaign.digest, token)) for token in tokens]
    (folder / PARTS_FOLDER).mkdir()
    (folder / CAMPAIGN_FILE).write_bytes(campaign.to_bytes())
    (folder / TOKENS_FILE).write_bytes(tokens_bytes(entries, campaign))
    for number, part in enumerate(parts):
        (folder / PARTS_FOLDER / f"{number:04}.json").write_bytes(part.to_bytes())
    return campaign, [Link(campaign.url, campaign.name, token) for token in tokens]


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
    answers: Sequence[Answers],
    homes: Path,
    progress: Progress | None,
) -> int:
    """Have every worker report; return how many used a browser."""
    browser = find_browser()

    def report(slot: int) -> None:
        given = {cell: answers[slot][task] for cell, task in enumerate(assigned[slot]) if task in answers[slot]}
        if slot == 0 and browser:
            _report_in_browser(browser, links[slot].text, given)
        else:
            _report_from_device(links[slot].text, given, homes / str(slot))

    with ThreadPoolExecutor(DEVICES_AT_ONCE) as pool:
        for done, _ in enumerate(pool.map(report, range(len(links))), start=1):
            if progress is not None:
                progress(done, len(links))
    return int(bool(browser))


def _report_from_device(link: str, given: Mapping[int, str], home: Path) -> None:
    """Answer cells on a Python device with a folder of its own, and send the report."""
    with refusals(), Device(link, home) as device:
        device.open()
        device.require_open()
        for cell, label in given.items():
            device.answer(cell, label)
        device.sample()
        device.send()


def _report_in_browser(browser: str, link: str, given: Mapping[int, str]) -> None:
    """Answer cells by clicking on the worker's page, and wait until the service has confirmed the report."""
    with import_module(PLAYWRIGHT).sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = running.new_page()
        page.set_default_timeout(SCREEN_MILLISECONDS)
        page.goto(link)
        page.click("#start")
        page.wait_for_selector("#tasks:not([hidden])")
        for cell, label in given.items():
            page.locator("#task-list fieldset").nth(cell).get_by_text(label, exact=True).click()
        page.click("#task-form button.primary")
        page.click("#send")
        page.wait_for_selector("#done:not([hidden])")
        running.close()

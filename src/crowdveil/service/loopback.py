"""Whole campaigns on this computer, from simulated answers: service on the loopback address, devices, results.

Only the answers are simulated. Each device fetches the campaign over HTTP, checks it, draws its report with secure
randomness and sends it once.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from crowdveil.campaign.assemble import CampaignContent, assemble_campaign
from crowdveil.campaign.device import Device, refusals_as_device_errors
from crowdveil.campaign.document import Campaign
from crowdveil.campaign.folder import CAMPAIGN_FILE, PARTS_FOLDER, TOKENS_FILE, TokenEntry, tokens_bytes
from crowdveil.campaign.token import Link, Token, token_hash
from crowdveil.service.campaign_registration import prepare_database
from crowdveil.service.curator.results import CampaignResult, Results
from crowdveil.service.server import ServerSettings, bind, run
from crowdveil.service.store import Store

DEVICES_AT_ONCE = 8
Answers = Mapping[int, str]
"""Label of each answered task of one worker, by task index."""
Progress = Callable[[int, int], None]


class LoopbackRun(NamedTuple):
    """Campaign, and its result: files, statement of privacy and warnings."""

    campaign: Campaign
    result: CampaignResult


def run_on_loopback(
    content: CampaignContent,
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
            _report_all(links, assigned, answers, folder / "devices", progress)
        store = Store.open(database)
        try:
            store.close_campaign(campaign.digest)
            result = Results(store).compute(campaign.digest)
        finally:
            store.close()
    return LoopbackRun(campaign, result)


def _write_campaign(
    content: CampaignContent, assigned: Sequence[Sequence[int]], folder: Path
) -> tuple[Campaign, list[Link]]:
    """Write the campaign and the hashes of its tokens into a folder; return the campaign and its links."""
    campaign, parts = assemble_campaign(content, assigned)
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
) -> None:
    """Have every worker report."""

    def report(slot: int) -> None:
        given = {cell: answers[slot][task] for cell, task in enumerate(assigned[slot]) if task in answers[slot]}
        _report_from_device(links[slot].text, given, homes / str(slot))

    with ThreadPoolExecutor(DEVICES_AT_ONCE) as pool:
        for done, _ in enumerate(pool.map(report, range(len(links))), start=1):
            if progress is not None:
                progress(done, len(links))


def _report_from_device(link: str, given: Mapping[int, str], home: Path) -> None:
    """Answer cells on a Python device with a folder of its own, and send the report."""
    with refusals_as_device_errors(), Device(link, home) as device:
        device.open()
        device.require_open()
        for cell, label in given.items():
            device.answer(cell, label)
        device.sample()
        device.send()

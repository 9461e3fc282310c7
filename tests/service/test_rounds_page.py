"""A later round on the worker's page in Chromium: one question as before, the sum over rounds, and refusals."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.document import EarlierRound, Groups
from crowdveil.campaign.folder import CampaignFolder
from crowdveil.campaign.report_body import decode
from crowdveil.service.one_file_page import one_file_page
from tests.campaign.builders import LABELS, build_campaign, response
from tests.service.accessibility import await_screen, check_screen
from tests.service.browser import Campaigning, campaigning, needs_chromium

pytestmark = [needs_chromium, pytest.mark.slow]

GROUPS = Groups(((0, 1),), (0, 1, 0, 1), (0, 0, 0))
LATER: dict[str, Any] = {
    "channels": [response(epsilon=0.5), response(epsilon=0.25)],
    "groups": GROUPS,
    "content": {"earlier": (EarlierRound("A" * 43, 2, 3, 1),)},
}
"""Two groups of tasks after a round of two answers of ratio 3: all four of this round have epsilon 1.5."""
SUM = "epsilon at most 3.698"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Campaigning]:
    """A service with an open later round."""
    with campaigning(tmp_path, **LATER) as running:
        yield running


def ledger(host: str, cells: int) -> dict[str, Any]:
    """Return a file with a line of the round before, as the page takes it."""
    line = {"campaign": "A" * 43, "cells": cells, "day": "2027-01-01", "denominator": 1, "host": host, "numerator": 3}
    line |= {"participation": "protected", "report": "ab" * 16, "title": "Animals"}
    text = json.dumps({"format": "crowdveil-ledger/1", "lines": [line]}, sort_keys=True, separators=(",", ":"))
    return {"name": "l.json", "mimeType": "application/json", "buffer": text.encode()}


def opened(browser: Any, service: Campaigning, lines: dict[str, Any]) -> Any:
    """Return the page of the first worker in a browser whose ledger has these lines."""
    page = browser.new_context(locale="en-US").new_page()
    page.goto(f"{service.built.campaign.url}/a/")
    page.click("#ledger summary")
    page.set_input_files("#import", lines)
    page.locator("#ledger-lines tr").first.wait_for()
    page.goto(service.link(0))
    return page


def test_a_later_round_is_one_question_with_the_sum_over_rounds(service: Campaigning, browser: Any) -> None:
    """The page asks one question, says the sum, and adds its lines to those of the round before."""
    page = opened(browser, service, ledger(str(service.built.campaign.url).split("/")[2], 2))
    await_screen(page, "intro")
    page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")
    promise, top = page.inner_text("#intro"), page.inner_text(".campaign")
    page.click("#start")
    await_screen(page, "tasks")
    asked = page.inner_text("#tasks")
    page.locator("fieldset").nth(0).get_by_text(LABELS.names[1], exact=True).click()
    page.wait_for_function("() => document.querySelector('.bar p').textContent.startsWith('1')")
    page.click("#task-form button")
    await_screen(page, "review")
    after = page.inner_text("#review")
    page.click("#send")
    await_screen(page, "done")
    with page.expect_download() as download:
        page.click("#export")
    lines = json.loads(Path(download.value.path()).read_text())["lines"]
    (body,) = service.bodies()
    ratios = [Fraction(*certificate["ratio"]) for certificate in service.built.campaign.certificates]

    assert "Round 2 of a campaign: the chances were chosen from the reports of the rounds before" in promise
    assert SUM in promise
    assert 1 == top.count("Which animal is it?")
    assert "Question" not in asked
    assert 4 == page.locator("fieldset").count() or "Task 4 of 4" in asked
    assert "With this one: 3.698" in after
    assert sorted([(2, Fraction(3)), *((2, ratio) for ratio in ratios)]) == sorted(
        (line["cells"], Fraction(line["numerator"], line["denominator"])) for line in lines
    )
    assert 4 == len(decode(body, service.built.campaign, 0, range(4)))


@pytest.mark.parametrize(("host", "cells"), [("elsewhere.example.org", 2), ("", 3)])
def test_a_round_of_another_campaign_is_refused_before_it_asks(
    service: Campaigning, browser: Any, host: str, cells: int
) -> None:
    """A browser whose ledger has the round before with another host, or more answers, stops."""
    page = opened(browser, service, ledger(host or str(service.built.campaign.url).split("/")[2], cells))
    await_screen(page, "refused")

    assert "This is not a later round of the campaign that it names." in page.inner_text("#refused")
    assert [] == service.bodies()


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_later_round_can_be_read_by_everybody(service: Campaigning, browser: Any, language: str) -> None:
    """The first screen of a later round passes the checks of accessibility in both languages."""
    small = {"width": 360, "height": 700}
    page = browser.new_context(locale="en-US", viewport=small, reduced_motion="reduce").new_page()
    page.goto(service.link(0))
    await_screen(page, "intro")
    page.click(f"[data-language={language}]")
    page.focus("#intro-heading")
    check_screen(page, "intro", language)

    assert ("Runde 2 einer Kampagne" in page.inner_text("#intro")) == (language == "de")


def test_the_one_file_page_asks_a_later_round(tmp_path: Path, browser: Any) -> None:
    """Without a service the page in one file says the sum over rounds, too."""
    built = build_campaign(url=None, **LATER)
    file = tmp_path / "device.html"
    file.write_bytes(one_file_page(CampaignFolder(built.write(tmp_path / "campaign"))))
    page = browser.new_context(locale="en-US").new_page()
    page.goto(f"{file.as_uri()}{built.link(1).text}")
    await_screen(page, "intro")

    assert SUM in page.inner_text("#intro")

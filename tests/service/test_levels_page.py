"""Levels of privacy and later rounds on the worker's page in Chromium: chosen, summed, sent, or refused."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.document import EarlierRound, Groups
from crowdveil.campaign.report import decode_body, level_in_body
from tests.campaign.builders import LABELS, response
from tests.service.accessibility import await_screen, check_screen
from tests.service.browser import Campaigning, campaigning, needs_chromium

pytestmark = [needs_chromium, pytest.mark.slow]

CHANNELS = [response(epsilon=one) for one in (0.25, 0.5, 1.0)]
OFFERS = ["Level 1: 73.2 % (epsilon 1)", "Level 2: 88.1 % (epsilon 2)", "Level 3: 98.3 % (epsilon 4)"]
"""What the page says of each level for four tasks: 1 / (1 + e^-epsilon), rounded up."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Campaigning]:
    """A service with an open campaign of three levels."""
    with campaigning(tmp_path, channels=CHANNELS, content={"levels": 3, "prior": "ab" * 32}) as running:
        yield running


def answer(page: Any) -> None:
    """Start, answer the first task, and send."""
    page.click("#start")
    await_screen(page, "tasks")
    page.locator("fieldset").nth(0).get_by_text(LABELS.names[1], exact=True).click()
    page.wait_for_function("() => document.querySelector('.bar p').textContent.startsWith('1')")
    page.click("#task-form button")
    await_screen(page, "review")
    page.click("#send")
    await_screen(page, "done")


def ledger_of(page: Any) -> list[dict[str, Any]]:
    """Return the lines of the ledger that the page offers."""
    page.click("#ledger summary")
    with page.expect_download() as download:
        page.click("#export")
    lines: list[dict[str, Any]] = json.loads(Path(download.value.path()).read_text())["lines"]
    return lines


@pytest.mark.parametrize("level", [None, 1, 2])
def test_a_level_is_chosen_before_any_question_and_sent(service: Campaigning, browser: Any, level: int | None) -> None:
    """The first level is chosen beforehand; report and ledger carry the worker's own, which a new start keeps."""
    page = browser.new_context(locale="en-US").new_page()
    page.goto(service.link(0))
    await_screen(page, "level")
    before = page.inner_text("body")
    offers = [text.strip() for text in page.locator("#level-list label").all_inner_texts()]
    preselected = page.locator("#level-list input:checked").get_attribute("value")
    if level is not None:
        page.locator("#level-list input").nth(level).check()
    page.click("#level-form button")
    await_screen(page, "intro")
    page.reload()
    await_screen(page, "intro")
    promise, chosen = page.inner_text("#intro"), level or 0
    answer(page)
    (body,), (line,) = service.bodies(), ledger_of(page)

    assert "0" == preselected
    assert offers == OFFERS
    assert "The level itself is not hidden" in before
    assert -1 < before.index(service.built.campaign.consent) < before.index(OFFERS[0])
    assert not any(text in page.inner_text("#level") + before for text in ("Which animal", "Picture 0", *LABELS.names))
    assert f"You chose level {chosen + 1} of 3." in promise
    assert OFFERS[chosen].split()[2] in promise
    assert chosen == level_in_body(body, service.built.campaign)
    assert 4 == len(decode_body(body, service.built.campaign, 0, range(4)))
    ratio = Fraction(*service.built.campaign.certificates[chosen]["ratio"])
    assert (4, ratio) == (line["cells"], Fraction(line["numerator"], line["denominator"]))


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_choice_can_be_read_and_used_by_everybody(service: Campaigning, browser: Any, language: str) -> None:
    """The screen of the levels passes the checks of accessibility in both languages."""
    small = {"width": 360, "height": 700}
    page = browser.new_context(locale="en-US", viewport=small, reduced_motion="reduce").new_page()
    page.goto(service.link(0))
    await_screen(page, "level")
    page.click(f"[data-language={language}]")
    page.focus("#level-heading")

    check_screen(page, "level", language)
    assert ("Stufe 1: 73,2 %" in page.inner_text("#level")) == (language == "de")


def test_the_consent_stands_before_start(service: Campaigning, browser: Any) -> None:
    """Consent and facts of the campaign are above Start, where the first button leads; the prior is named as public."""
    page = browser.new_context(locale="en-US", viewport={"width": 360, "height": 640}).new_page()
    page.goto(service.link(0))
    await_screen(page, "level")
    page.click("#level-form button")
    await_screen(page, "intro")
    page.click("#intro-next")
    consent, start = (page.locator(name).bounding_box() for name in ("#consent", "#start"))

    assert service.built.campaign.consent in page.inner_text("#consent")
    assert 0 <= consent["y"] < 640
    assert consent["y"] + consent["height"] < start["y"]
    assert "about-heading" == page.evaluate("document.activeElement.id")
    page.click("#more summary")
    assert f"stated before anybody answered. SHA-256 of its file: {'ab' * 32}" in page.inner_text("#more")


def test_a_second_choice_of_the_same_level_is_no_error(service: Campaigning, browser: Any) -> None:
    """A double click on the button chooses once, and goes on."""
    page = browser.new_context(locale="en-US").new_page()
    page.goto(service.link(0))
    await_screen(page, "level")
    page.evaluate("() => { const f = document.getElementById('level-form'); f.requestSubmit(); f.requestSubmit(); }")
    await_screen(page, "intro")
    page.click("#start")
    await_screen(page, "tasks")

    assert page.locator("#refused").is_hidden()


def test_a_level_counts_for_the_campaign_in_this_browser(service: Campaigning, browser: Any) -> None:
    """Another link of the campaign asks for no level again: its questions were seen with the first."""
    context = browser.new_context(locale="en-US")
    for slot in (0, 1):
        page = context.new_page()
        page.goto(service.link(slot))
        if slot == 0:
            await_screen(page, "level")
            page.locator("#level-list input").nth(1).check()
            page.click("#level-form button")
        await_screen(page, "intro")

        assert "You chose level 2 of 3." in page.inner_text("#intro")


def test_levels_above_the_limit_say_so(service: Campaigning, browser: Any) -> None:
    """The sum with each level is compared with the limit before the choice."""
    page = browser.new_context(locale="en-US").new_page()
    page.goto(service.link(0))
    await_screen(page, "level")
    page.click("#ledger summary")
    page.fill("#limit", "3")
    page.locator("#limit").blur()
    page.reload()
    await_screen(page, "level")

    labels = page.locator("#level-list label").all_inner_texts()
    assert [False, False, True] == ["your sum would be 4, above your limit of 3" in text for text in labels]


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_level_that_hides_almost_nothing_says_so_in_red(tmp_path: Path, browser: Any, language: str) -> None:
    """Above 99.9 % the option and the promise have words and the colour of a warning; below they have neither."""
    page = browser.new_context(locale="en-US", viewport={"width": 360, "height": 640}).new_page()
    channels = [response(epsilon=one) for one in (0.25, 1.7, 3.0)]
    words, red = {"en": "hides almost nothing", "de": "fast nichts"}[language], "rgb(166, 27, 27)"
    with campaigning(tmp_path, channels=channels, content={"levels": 3}) as service:
        for level, is_weak in enumerate([False, False, True]):
            page.goto(service.link(level))
            await_screen(page, "level")
            page.click(f"[data-language={language}]")
            offers = page.locator("#level-list label").all_inner_texts()
            page.locator("#level-list input").nth(level).check()
            page.click("#level-form button")
            await_screen(page, "intro")
            figure = page.locator("#intro .figure:visible")
            colour = figure.locator("strong").evaluate("node => getComputedStyle(node).color")

            assert [words in text for text in offers] == [False, False, True]
            assert is_weak == (words in figure.inner_text()) == (colour == red)
            check_screen(page, "intro", language)
            page = browser.new_context(locale="en-US", viewport={"width": 360, "height": 640}).new_page()


GROUPS = Groups(((0, 1),), (0, 1, 0, 1), (0, 0, 0))
LATER: dict[str, Any] = {
    "channels": [response(epsilon=0.5), response(epsilon=0.25)],
    "groups": GROUPS,
    "content": {"earlier": (EarlierRound("A" * 43, 2, 3, 1),)},
}
"""Two groups of tasks after a round of two answers of ratio 3: all four of this round have epsilon 1.5."""
SUM = "epsilon at most 3.698"


@pytest.fixture
def rounds_service(tmp_path: Path) -> Iterator[Campaigning]:
    """A service with an open later round."""
    with campaigning(tmp_path, **LATER) as running:
        yield running


def ledger(host: str, cells: int) -> dict[str, Any]:
    """Return a file with a line of the round before, as the page takes it."""
    line = {"campaign": "A" * 43, "cells": cells, "day": "2027-01-01", "denominator": 1, "host": host, "numerator": 3}
    line |= {"participation": "protected", "report": "ab" * 16, "title": "Animals"}
    text = json.dumps({"format": "crowdveil-ledger/1", "lines": [line]}, sort_keys=True, separators=(",", ":"))
    return {"name": "l.json", "mimeType": "application/json", "buffer": text.encode()}


def opened(browser: Any, running: Campaigning, lines: dict[str, Any]) -> Any:
    """Return the page of the first worker in a browser whose ledger has these lines."""
    page = browser.new_context(locale="en-US").new_page()
    page.goto(f"{running.built.campaign.url}/a/")
    page.click("#ledger summary")
    page.set_input_files("#import", lines)
    page.locator("#ledger-lines tr").first.wait_for()
    page.goto(running.link(0))
    return page


def test_a_later_round_is_one_question_with_the_sum_over_rounds(rounds_service: Campaigning, browser: Any) -> None:
    """The page asks one question, says the sum, and adds its lines to those of the round before."""
    page = opened(browser, rounds_service, ledger(str(rounds_service.built.campaign.url).split("/")[2], 2))
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
    (body,) = rounds_service.bodies()
    ratios = [Fraction(*certificate["ratio"]) for certificate in rounds_service.built.campaign.certificates]

    assert "Round 2 of a campaign: the chances were chosen from the reports of the rounds before" in promise
    assert SUM in promise
    assert 1 == top.count("Which animal is it?")
    assert "Question" not in asked
    assert 4 == page.locator("fieldset").count() or "Task 4 of 4" in asked
    assert "With this one: 3.698" in after
    assert sorted([(2, Fraction(3)), *((2, ratio) for ratio in ratios)]) == sorted(
        (line["cells"], Fraction(line["numerator"], line["denominator"])) for line in lines
    )
    assert 4 == len(decode_body(body, rounds_service.built.campaign, 0, range(4)))


@pytest.mark.parametrize(("host", "cells"), [("elsewhere.example.org", 2), ("", 3)])
def test_a_round_of_another_campaign_is_refused_before_it_asks(
    rounds_service: Campaigning, browser: Any, host: str, cells: int
) -> None:
    """A browser whose ledger has the round before with another host, or more answers, stops."""
    page = opened(browser, rounds_service, ledger(host or str(rounds_service.built.campaign.url).split("/")[2], cells))
    await_screen(page, "refused")

    assert "This is not a later round of the campaign that it names." in page.inner_text("#refused")
    assert [] == rounds_service.bodies()


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_later_round_can_be_read_by_everybody(rounds_service: Campaigning, browser: Any, language: str) -> None:
    """The first screen of a later round passes the checks of accessibility in both languages."""
    small = {"width": 360, "height": 700}
    page = browser.new_context(locale="en-US", viewport=small, reduced_motion="reduce").new_page()
    page.goto(rounds_service.link(0))
    await_screen(page, "intro")
    page.click(f"[data-language={language}]")
    page.focus("#intro-heading")
    check_screen(page, "intro", language)

    assert ("Runde 2 einer Kampagne" in page.inner_text("#intro")) == (language == "de")

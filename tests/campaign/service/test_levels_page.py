"""Levels of privacy and the ledger on the worker's page in Chromium: chosen, summed, sent, or refused."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.rules.document import Groups
from crowdveil.campaign.rules.report import decode_body, level_in_body
from tests.campaign.builders import LABELS, ledger_line, response
from tests.campaign.service.accessibility import await_screen, check_screen, set_limit
from tests.campaign.service.browser import Campaigning, campaigning, needs_chromium

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
    set_limit(page, "3")
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
"""Two groups of tasks: all four answers have epsilon 1.5."""
GROUPED: dict[str, Any] = {"channels": [response(epsilon=0.5), response(epsilon=0.25)], "groups": GROUPS}


@pytest.fixture
def grouped_service(tmp_path: Path) -> Iterator[Campaigning]:
    """A service with an open campaign of two groups of tasks."""
    with campaigning(tmp_path, **GROUPED) as running:
        yield running


def ledger(host: str) -> dict[str, Any]:
    """Return a file with a line of another campaign, two answers of ratio 3, as the page takes it."""
    text = json.dumps(
        {"format": "crowdveil-ledger/1", "lines": [ledger_line(host=host)]}, sort_keys=True, separators=(",", ":")
    )
    return {"name": "l.json", "mimeType": "application/json", "buffer": text.encode()}


def test_another_campaign_of_the_same_curator_costs_the_sum(grouped_service: Campaigning, browser: Any) -> None:
    """The page says that the same question asked again costs the sum, and adds its lines to those of the ledger."""
    host = str(grouped_service.built.campaign.url).split("/")[2]
    page = browser.new_context(locale="en-US").new_page()
    page.goto(f"{grouped_service.built.campaign.url}/a/")
    await_screen(page, "welcome")
    page.click("#ledger summary")
    page.set_input_files("#import", ledger(host))
    page.locator("#ledger-lines tr").first.wait_for()
    page.goto(grouped_service.link(0))
    await_screen(page, "intro")
    page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")
    promise = page.inner_text("#intro")
    page.click("#start")
    await_screen(page, "tasks")
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
    (body,) = grouped_service.bodies()
    ratios = [Fraction(*certificate["ratio"]) for certificate in grouped_service.built.campaign.certificates]

    assert "The same question in another campaign costs the sum of both epsilons." in promise
    assert "With this one: 3.698" in after
    assert [host] == page.locator("#ledger-lines th").all_inner_texts()
    assert sorted([(2, Fraction(3)), *((2, ratio) for ratio in ratios)]) == sorted(
        (line["cells"], Fraction(line["numerator"], line["denominator"])) for line in lines
    )
    assert 4 == len(decode_body(body, grouped_service.built.campaign, 0, range(4)))

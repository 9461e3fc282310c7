"""Labels and numbers in one campaign, in Chromium: from the worker's first page to the curator's page of results."""

import json
import secrets
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.pages.pages import curator_routes
from crowdveil.campaign.rules.report import decode_body
from crowdveil.campaign.service.app import create_app
from crowdveil.campaign.service.campaign_registration import CURATOR_FILE, register_campaign
from crowdveil.campaign.service.store import Store
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms import QuantizedResponse
from crowdveil.standalone.checks import epsilon, shown, sure
from tests.campaign.builders import BuiltCampaign, body_of, build_questions, response
from tests.campaign.service.accessibility import await_screen, check_page, check_screen
from tests.campaign.service.browser import free_port, leave, needs_chromium, served

pytest.importorskip("axe_playwright_python")
pytestmark = [needs_chromium, pytest.mark.slow]

SLOTS = 5
CHANNELS = [
    response(Categories(("no", "yes")), 0.5),
    QuantizedResponse(alphabet=Scale(0, 20), epsilon=1.0, participation="protected", cuts=(7, 14)).channel(),
]
LOSS = "2.500"
"""Sum of the first worker: one answer at 0.5 and two at 1.0."""


class Running(NamedTuple):
    """A service with a campaign of labels and numbers, its store, and the token of its curator."""

    built: BuiltCampaign
    store: Store
    token: str


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    """A service whose campaign has two questions; all workers but the first have reported."""
    port = free_port()
    lists = [[0, 2, 3], *[[0, 1, 2, 3]] * (SLOTS - 1)]
    built = build_questions(CHANNELS, [2, 2], lists, url=f"http://127.0.0.1:{port}", min_reports=SLOTS)
    folder = built.write(tmp_path / "campaign")
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register_campaign(store, CampaignFolder(folder))
    for slot in range(1, SLOTS):
        body = body_of([1, 0, slot % 3, 2], built.campaign)
        store.store_report(built.campaign.digest, built.tokens[slot], secrets.token_hex(16), body)
    with served(create_app(store, curator_routes=curator_routes(store)), port):
        yield Running(built, store, (folder / CURATOR_FILE).read_text("utf-8").strip())
    store.close()


def answer_both(page: Any) -> None:
    """Answer a label by its button, and a number from its menu."""
    fields = page.locator("fieldset")
    fields.nth(0).get_by_text("yes", exact=True).click()
    page.wait_for_function("() => document.querySelector('.bar p').textContent.startsWith('1')")
    fields.nth(1).locator("select").select_option("12")
    page.wait_for_function("() => document.querySelector('.bar p').textContent.startsWith('2')")


def test_labels_and_numbers_from_the_first_page_to_the_results(service: Running, browser: Any, tmp_path: Path) -> None:
    """The worker sees both questions, one promise over all, and the control of each; results have a section of each."""
    campaign = service.built.campaign
    page = browser.new_context(locale="en-US").new_page()
    page.goto(service.built.link(0).text)
    await_screen(page, "intro")
    page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")
    top, promise = page.inner_text(".campaign"), page.inner_text("#intro")
    tables = page.locator("#chances table").count()
    page.click("#start")
    await_screen(page, "tasks")
    headings, hidden = page.locator("#task-list h3").all_inner_texts(), page.locator("#question").is_hidden()
    answer_both(page)
    page.reload()
    await_screen(page, "tasks")
    kept = page.locator("fieldset").nth(1).locator("select").input_value()
    page.click("#task-form button")
    await_screen(page, "review")
    page.click("#send")
    await_screen(page, "done")
    page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")
    with page.expect_download() as download:
        page.click("#export")
    lines = json.loads(Path(download.value.path()).read_text())["lines"]
    (body,) = [body for slot, body in stored(service) if slot == 0]

    assert ["Question 1 of 2\nQuestion 1?", "Question 2 of 2\nQuestion 2?"] == [text.strip() for text in headings]
    assert all(f"Question {number}?" in top for number in (1, 2))
    assert f"{sure(epsilon(lines)).removesuffix(' %')} %" in promise
    assert "(epsilon 2.5)" in promise
    assert "(epsilon 1 for a single answer)" in promise
    assert (2, True, "12") == (tables, hidden, kept)
    assert LOSS == shown(epsilon(lines))
    expected = {(1, Fraction(*campaign.certificates[0]["ratio"])), (2, Fraction(*campaign.certificates[1]["ratio"]))}
    assert expected == {(line["cells"], Fraction(line["numerator"], line["denominator"])) for line in lines}
    assert 3 == len(decode_body(body, campaign, 0, service.built.tasks(0)))
    check_results(service, browser)


def stored(service: Running) -> list[tuple[int, bytes]]:
    """Close the campaign, and return slot and body of every report."""
    service.store.close_and_count_reports(service.built.campaign.digest)
    return list(service.store.reports_under_valid_links(service.built.campaign.digest))


def check_results(service: Running, browser: Any) -> None:
    """Infer, and check the page of results: a section for each question, one statement, and the files of each."""
    page, told = browser.new_page(), []
    page.on("console", lambda message: told.append(message.text))
    page.goto(f"{service.built.campaign.url}/curator/")
    page.fill("#token", service.token)
    leave(page, "button")
    leave(page, "button:has-text('Infer')")
    with page.expect_download() as download:
        page.click("a[href$='question-2/truths.csv']")
    truths, name = Path(download.value.path()).read_text("utf-8"), download.value.suggested_filename
    overview = page.inner_text("main")
    leave(page, "a.button")
    sections = page.locator("section.asked").all_inner_texts()
    page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")
    whole = " ".join(page.inner_text("main").split())
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        check_page(page, width)

    assert ("task,truth", "question-2-truths.csv") == (truths[:10], name)
    assert "The campaign asks 2 questions" in overview
    assert [] == [text for text in told if "Policy" in text]
    assert [True, True] == [f"Question {k}?" in text for k, text in enumerate(sections, start=1)]
    assert ["confidence" in text for text in sections] == [True, False]
    assert 1 == whole.count("for all answers of one worker (at most 4)")
    assert "epsilon 3 for all answers of one worker" in whole


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_tasks_of_two_questions_can_be_read_and_used_by_everybody(
    service: Running, browser: Any, language: str
) -> None:
    """The screens with two questions pass the checks of accessibility in both languages."""
    small = {"width": 360, "height": 700}
    page = browser.new_context(locale="en-US", viewport=small, reduced_motion="reduce").new_page()
    page.goto(service.built.link(0).text)
    await_screen(page, "intro")
    page.click(f"[data-language={language}]")
    page.focus("#intro-heading")
    check_screen(page, "intro", language)
    page.click("#start")
    check_screen(page, "tasks", language)

    assert ("Frage 2 von 2" in page.inner_text("#tasks")) == (language == "de")

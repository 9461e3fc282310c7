"""Links of tasks on the worker's page, in Chromium: shown as text, opened without a way back, named as visible."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.rules.document import Task
from crowdveil.campaign.service.app import create_app
from crowdveil.campaign.service.campaign_registration import register_campaign
from crowdveil.campaign.service.store import Store
from crowdveil.channels.alphabet import Categories
from tests.campaign.builders import BuiltCampaign, build_campaign, build_questions, response
from tests.campaign.service.accessibility import await_screen, check_screen
from tests.campaign.service.browser import address_of, free_port, needs_chromium, served

pytest.importorskip("axe_playwright_python")
pytestmark = [needs_chromium, pytest.mark.slow]


@pytest.fixture
def built(tmp_path: Path) -> Iterator[BuiltCampaign]:
    """A served campaign: one task with a link to this computer, one with a long link elsewhere, one without."""
    port = free_port()
    links = (f"http://127.0.0.1:{port}/healthz", "https://a.example/%3Cb%3E" + "x" * 200 + "?a=\"<i>'", None)
    tasks = tuple(Task(f"t{number}", f"Essay {number}", link=link) for number, link in enumerate(links))
    yield from serving(
        build_campaign(url=f"http://127.0.0.1:{port}", tasks=3, content={"tasks": tasks}), tmp_path, port
    )


@pytest.fixture
def questions(tmp_path: Path) -> Iterator[BuiltCampaign]:
    """A served campaign of two questions about the same two tasks."""
    port = free_port()
    channels = [response(Categories(("no", "yes")), 1.0), response(Categories(("bad", "good")), 1.0)]
    yield from serving(
        build_questions(channels, [2, 2], [range(4)] * 2, url=f"http://127.0.0.1:{port}"), tmp_path, port
    )


def serving(made: BuiltCampaign, tmp_path: Path, port: int) -> Iterator[BuiltCampaign]:
    """Yield a campaign while it is served."""
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register_campaign(store, CampaignFolder(made.write(tmp_path / "campaign")))
    with served(create_app(store), port):
        yield made
    store.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_link_is_opened_without_a_way_back(built: BuiltCampaign, browser: Any, width: int) -> None:
    """The new tab knows neither page nor token; the address is text, stays in its box, and its host is named."""
    context = browser.new_context(locale="en-US", viewport={"width": width, "height": 800})
    page = context.new_page()
    page.goto(built.link(0).text)
    await_screen(page, "intro")
    page.click("#start")
    page.set_viewport_size({"width": 360, "height": 800})
    check_screen(page, "tasks", "en")
    page.set_viewport_size({"width": width, "height": 800})
    shown = page.locator("#tasks .judged a")
    with context.expect_page() as opening:
        shown.nth(0).click()
    opened = opening.value
    opened.wait_for_url("**/healthz")

    assert [task.link for task in built.campaign.tasks[:2]] == [shown.nth(k).text_content() for k in range(2)]
    assert 2 == shown.count()
    assert 0 == page.locator("#tasks .judged i").count()
    assert ("noopener noreferrer", "_blank") == tuple(shown.nth(1).get_attribute(name) for name in ("rel", "target"))
    assert ["", True] == opened.evaluate("[document.referrer, window.opener === null]")
    assert built.tokens[0].text not in address_of(opened)
    assert "a.example sees that it is opened" in page.locator("#tasks .judged").nth(1).inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_the_questions_about_one_task_stand_together(questions: BuiltCampaign, browser: Any) -> None:
    """Each task has its two questions before the next task; an answer is kept in the cell of its question."""
    page = browser.new_context(locale="en-US").new_page()
    page.goto(questions.link(0).text)
    await_screen(page, "intro")
    page.click("#start")
    await_screen(page, "tasks")
    page.locator("fieldset").nth(1).get_by_text("good", exact=True).click()
    page.wait_for_function("() => document.querySelector('.bar p').textContent.startsWith('1')")
    order = page.locator("#task-list h3, #task-list legend .foreign").all_inner_texts()

    assert ["Question 1?", "Thing 0", "Question 2?", "Thing 0", "Question 1?", "Thing 1", "Question 2?", "Thing 1"] == [
        next(name for name in ("Question 1?", "Question 2?", "Thing 0", "Thing 1") if name in text) for text in order
    ]
    page.click("#task-form button.primary")
    page.click("#back")
    chosen = [page.locator("fieldset").nth(k).locator("input:checked").get_attribute("value") for k in range(4)]
    assert ["", "1", "", ""] == chosen

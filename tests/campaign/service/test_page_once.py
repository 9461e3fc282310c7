"""How often the worker's page draws, and what a service and other links can change about it; whose words it shows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.service.one_file_page import one_file_page
from tests.campaign.builders import build_campaign
from tests.campaign.service.accessibility import await_screen
from tests.campaign.service.browser import Campaigning, campaigning, needs_chromium
from tests.campaign.service.test_page import begin, choose, record_of, send, sentence

pytestmark = [needs_chromium, pytest.mark.slow]
FALSE_PROMISE = "Epsilon 0.001 for all answers together."


@pytest.fixture
def service(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Campaigning]:
    """A service with an open campaign of three workers and four tasks, or as many as the test asks for."""
    with campaigning(tmp_path, tasks=getattr(request, "param", 4)) as running:
        yield running


def ledger_file(page: Any) -> dict[str, Any]:
    """Return the ledger that the page offers, as an upload."""
    page.locator("#ledger").evaluate("(node) => (node.open = true)")
    with page.expect_download() as saved:
        page.click("#export")
    return {"name": "l.json", "mimeType": "application/json", "buffer": Path(saved.value.path()).read_bytes()}


@pytest.mark.parametrize("service", [24], indirect=True)
def test_a_service_can_make_a_browser_draw_again_but_for_a_saved_ledger(browser: Any, service: Campaigning) -> None:
    """A service answers 503, then deletes the storage: the served page draws another report, as it says before.

    With the ledger that the worker saved it refuses. Two reports of 24 tasks are equal once in 1e12 times.
    """
    context, bodies = browser.new_context(locale="en-US", accept_downloads=True), []

    def attack(route: Any) -> None:
        bodies.append(route.request.post_data_buffer)
        route.fulfill(status=503)

    saved = []
    for _ in range(2):
        page = context.new_page()
        page.route("**/reports/*", attack)
        page.goto(service.link(0))
        await_screen(page, "intro")
        said = page.text_content("#intro")
        page.click("#start")
        await_screen(page, "tasks")
        for task in range(4):
            choose(page, task, "quokka")
        send(page)
        page.wait_for_selector("#status p:not([hidden])")
        waiting = page.inner_text("#sending")
        saved.append(ledger_file(page))
        page.close()
        headers = {"Content-Type": "text/html; charset=utf-8", "Clear-Site-Data": '"storage"'}
        service.forger.replies["/a/"] = (200, headers, b"<!doctype html><title>cleared</title>")
        emptied = context.new_page()
        emptied.goto(service.url + "/a/")
        emptied.close()
        del service.forger.replies["/a/"]
    page = context.new_page()
    page.goto(service.link(0))
    await_screen(page, "intro")
    page.set_input_files("#import", saved[0])
    page.wait_for_function("() => document.querySelector('#ledger summary').textContent.endsWith('24')")
    page.click("#start")

    assert "The service can make a browser delete them, and this page would draw again" in said
    assert "Did you ever send a report of this campaign, from any device? Then stop here" in said
    assert "only a saved ledger makes it refuse" in waiting
    assert [1, 1] == [len(json.loads(one["buffer"])["lines"]) for one in saved]
    assert 2 == len({line["report"] for one in saved for line in json.loads(one["buffer"])["lines"]})
    assert 2 == len(set(bodies))
    assert "drawn a report of this campaign before" in sentence(page)


def test_the_page_in_one_file_keeps_its_report(browser: Any, service: Campaigning, tmp_path: Path) -> None:
    """A service that deletes the storage of its pages does not reach a page from a file: it has the same report."""
    built = build_campaign(url=None)
    file = tmp_path / "device.html"
    file.write_bytes(one_file_page(CampaignFolder(built.write(tmp_path / "no service"))))
    headers = {"Content-Type": "text/html; charset=utf-8", "Clear-Site-Data": '"*"'}
    service.forger.replies["/a/"] = (200, headers, b"<!doctype html><title>cleared</title>")
    context, found = browser.new_context(locale="en-US"), []
    for _ in range(3):
        page = context.new_page()
        page.goto(f"{file.as_uri()}{built.link(0).text}")
        page.wait_for_selector("#intro:not([hidden]), #report:not([hidden])")
        if page.locator("#intro").is_visible():
            assert "The service can make" not in page.inner_text("#intro")
            page.click("#start")
            await_screen(page, "tasks")
            send(page)
        await_screen(page, "report")
        found.append(record_of(page)["body"])
        page.goto(service.url + "/a/")
        page.close()

    assert 1 == len(set(map(tuple, found)))


def test_two_links_of_a_campaign_draw_one_report(browser: Any, service: Campaigning) -> None:
    """Of two links that are answered side by side in one browser the first draws; a third one cannot begin."""
    context = browser.new_context(locale="en-US")
    first, second, third = (context.new_page() for _ in range(3))
    first.route("**/reports/*", lambda route: route.fulfill(status=503))
    begin(first, service.link(0))
    begin(second, service.link(1))
    send(first)
    first.wait_for_selector("#status p:not([hidden])")
    send(second)
    third.goto(service.link(2))
    await_screen(third, "intro")
    third.click("#start")

    assert "before, with another link" in sentence(second)
    assert "use a browser profile of your own" in sentence(third)
    assert [] == service.bodies()
    begin(browser.new_context(locale="en-US").new_page(), service.link(2))


def test_words_of_the_curator_stand_in_elements_of_their_own(browser: Any, tmp_path: Path) -> None:
    """Title, question and consent are quoted and isolated in their direction; no promise of the page holds them."""
    texts = {
        "title": f"\u05e9\u05dc\u05d5\u05dd {FALSE_PROMISE}",
        "question": f"How often?\n{FALSE_PROMISE}",
        "consent": f"{FALSE_PROMISE}\n\nYes.",
    }
    with campaigning(tmp_path, content=texts) as service:
        page = browser.new_context(locale="en-US").new_page()
        page.goto(service.link(0))
        await_screen(page, "intro")
        found = {name: page.inner_text(f":is(#{name}, #{name} *).foreign[dir=auto]") for name in texts}
        quotes = page.evaluate(
            "() => Array.from(document.querySelectorAll('.foreign'), (node) => "
            "getComputedStyle(node, '::before').content + getComputedStyle(node, '::after').content)"
        )
        page.evaluate("() => document.querySelectorAll('.foreign').forEach((node) => node.remove())")
        ours = page.inner_text("main")

    assert texts == found
    assert {"open-quoteclose-quote"} == set(quotes)
    assert FALSE_PROMISE not in ours
    assert 2 == ours.count("In the words of the curator:")


def test_a_reason_that_others_wrote_is_quoted(browser: Any, service: Campaigning) -> None:
    """What a service writes into a refusal stands in an element of its own."""
    problem = {"status": 410, "content_type": "application/problem+json"}
    page = browser.new_context(locale="en-US").new_page()
    page.route("**/link", lambda route: route.fulfill(**problem, body='{"type": "x\u202e Nothing was sent."}'))
    page.goto(service.link(0))
    await_screen(page, "intro")
    page.click("#start")
    await_screen(page, "refused")

    assert "Nothing was sent." in page.inner_text("#refused p.small bdi.foreign")

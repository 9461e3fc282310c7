"""The service below a path of another site, behind a proxy that strips the path, with real pages in Chromium."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.pages.pages import curator_routes
from crowdveil.campaign.service.app import create_app
from crowdveil.campaign.service.campaign_registration import CURATOR_FILE, register_campaign
from crowdveil.campaign.service.store import Store
from tests.campaign.builders import BuiltCampaign, body_of, build_campaign
from tests.campaign.service.accessibility import send_without_answers
from tests.campaign.service.browser import ASGIApp, address_of, free_port, leave, needs_chromium, served

pytestmark = [needs_chromium, pytest.mark.slow]
PREFIX, SLOTS = "/school/survey", 6
STYLED = "() => getComputedStyle(document.querySelector('main')).maxWidth !== 'none'"


def stripping(app: ASGIApp) -> ASGIApp:
    """Return a proxy that passes on what lies below the prefix, without it; everything else is another site's."""

    async def proxy(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await app(scope, receive, send)
        path = scope["path"].removeprefix(PREFIX)
        if path == scope["path"] or not path.startswith("/"):
            await send({"type": "http.response.start", "status": 418, "headers": []})
            return await send({"type": "http.response.body", "body": b"another site"})
        return await app({**scope, "path": path, "raw_path": path.encode()}, receive, send)

    return proxy


@pytest.fixture
def below(tmp_path: Path) -> Iterator[tuple[BuiltCampaign, str]]:
    """A campaign of a service below a path, whose other workers have reported, and the curator's token."""
    port = free_port()
    built = build_campaign(
        url=f"http://127.0.0.1:{port}{PREFIX}", slots=SLOTS, content={"title": "Night shifts", "min_reports": 2}
    )
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    folder = built.write(tmp_path / "campaign")
    register_campaign(store, CampaignFolder(folder))
    for slot in range(1, SLOTS):
        body = body_of([slot % 3] * 4, built.campaign)
        store.store_report(built.campaign.digest, built.tokens[slot], secrets.token_hex(16), body)
    with served(stripping(create_app(store, curator_routes=curator_routes(store))), port):
        yield built, (folder / CURATOR_FILE).read_text("utf-8").strip()
    store.close()


def test_a_worker_answers_below_a_path(browser: Any, below: tuple[BuiltCampaign, str]) -> None:
    """Below a path links open, without the slash, too, and a report is sent; nothing is asked of the site around it."""
    built, _ = below
    page = browser.new_context(locale="en-US").new_page()
    strange: list[str] = []
    page.on("response", lambda reply: reply.status == 418 and strange.append(reply.url))
    send_without_answers(page, built.link(0).text.replace("/a/#", "/a#"))
    for path, said in (
        ("/", "collects answers"),
        ("/x/y/none", "nothing at"),
        ("/curator/results", "not logged in"),
    ):
        page.goto(f"{built.campaign.url}{path}")
        assert said in page.inner_text("h1") + page.inner_text("main")
        page.wait_for_function(STYLED)
    leave(page, "text=Log in as the curator")
    assert f"{built.campaign.url}/curator/" == address_of(page)
    assert [] == strange


def test_a_curator_works_below_a_path(browser: Any, below: tuple[BuiltCampaign, str]) -> None:
    """Login, closing, inference, results, downloads and logout work below a path, and every page has its style."""
    built, token = below
    page = browser.new_context(locale="en-US").new_page()
    strange: list[str] = []
    page.on("response", lambda reply: reply.status == 418 and strange.append(reply.url))
    page.goto(f"{built.campaign.url}/curator")
    page.fill("#token", "x" * 43)
    leave(page, "button")
    assert "no campaign with this token" in page.inner_text("main")
    page.wait_for_function(STYLED)
    page.fill("#token", token)
    leave(page, "button")
    assert f"{built.campaign.url}/curator/" == address_of(page)
    page.check("[name=confirm]")
    leave(page, "button.danger")
    leave(page, "button:has-text('Infer')")
    page.wait_for_function(STYLED)
    with page.expect_download() as saved:
        page.click("text=truths.csv")
    leave(page, "text=Show the results")
    assert "Night shifts" in page.inner_text("h1")
    page.goto(f"{built.campaign.url}/curator/")
    leave(page, "text=Log out")

    assert "task" in Path(saved.value.path()).read_text("utf-8")
    assert page.locator("#token").is_visible()
    assert [] == strange

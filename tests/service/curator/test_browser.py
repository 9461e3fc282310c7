"""The curator's pages in Chromium: cookie, Origin of forms and policies of the pages work in a real browser."""

import secrets
from pathlib import Path

import pytest

from crowdveil.campaign.folder import CampaignFolder
from crowdveil.service.app import create_app
from crowdveil.service.curator.pages import curator_routes
from crowdveil.service.registration import CURATOR_FILE, register
from crowdveil.service.store import Store
from tests.campaign.builders import body_of, build_campaign
from tests.service.browser import chromium, free_port, needs_chromium, served

pytestmark = pytest.mark.slow

SLOTS = 6


@pytest.mark.slow
@needs_chromium
def test_the_curator_closes_infers_and_downloads(tmp_path: Path) -> None:
    """The curator logs in, closes, infers, sees the pictures and downloads the statement; no policy is violated."""
    built = build_campaign(slots=SLOTS, content={"min_reports": SLOTS})
    folder = built.write(tmp_path / "campaign")
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register(store, CampaignFolder(folder))
    for slot in range(SLOTS):
        body = body_of([0] * 4, built.campaign)
        store.store_report(built.campaign.digest, built.tokens[slot], secrets.token_hex(16), body)
    port, told = free_port(), []
    with served(create_app(store, curator_routes=curator_routes(store)), port), chromium() as browser:
        page = browser.new_page()
        page.on("console", lambda message: told.append(message.text))
        page.goto(f"http://127.0.0.1:{port}/curator/")
        page.fill("#token", (folder / CURATOR_FILE).read_text("utf-8").strip())
        page.click("button")
        page.check("input[name=confirm]")
        page.click("button.danger")
        page.locator("button", has_text="Infer").click()
        with page.expect_download() as download:
            page.click("a[href$='statement.txt']")
        statement = Path(download.value.path()).read_text("utf-8")
        page.click("a.button")
        page.locator("section.conclusion").wait_for()
        pictures = page.locator("svg[role=img]").count()
        title, color = (
            page.title(),
            page.evaluate("getComputedStyle(document.querySelector('.notice')).borderLeftColor"),
        )
    store.close()

    assert "Every answer is protected by local differential privacy." in " ".join(statement.split())
    assert (built.campaign.title, 5) == (title, pictures)
    assert "rgb(135, 147, 161)" == color
    assert [] == [text for text in told if "Content Security Policy" in text or "Permissions-Policy" in text]

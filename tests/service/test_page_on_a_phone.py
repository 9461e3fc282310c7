"""The first screen of the worker's page on a small phone."""

from pathlib import Path
from typing import Any

import pytest

from crowdveil import Scale
from tests.campaign.builders import response
from tests.service.accessibility import await_screen
from tests.service.browser import campaigning


@pytest.mark.parametrize("language", ["en-US", "de-DE"])
def test_start_is_on_the_first_screen_of_a_phone(browser: Any, tmp_path: Path, language: str) -> None:
    """At 360 x 640 Start needs no scrolling; before the first campaign no epsilon is counted; wide tables scroll."""
    context = browser.new_context(viewport={"width": 360, "height": 640}, locale=language)
    page = context.new_page()
    with campaigning(tmp_path / "one", channels=[response(Scale(0, 19), 2.0)]) as service:
        page.goto(service.link(0))
        await_screen(page, "intro")
        end = page.evaluate("document.getElementById('start').getBoundingClientRect().bottom")
        ledger = page.inner_text("#ledger summary")
        for summary in page.query_selector_all("summary"):
            summary.click()

        assert end <= 640
        assert ledger.endswith(("nothing", "nichts"))
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.evaluate("[...document.querySelectorAll('.scroll')].some(e => e.scrollWidth > e.clientWidth)")
    context.close()

"""Every page that people see passes axe-core, with contrast in pictures, at 390 and 1280 px, light and dark."""

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
from crowdveil.channels.alphabet import Scale
from crowdveil.comparison.demo.page import page_html
from crowdveil.comparison.trials import compare_with_unprotected, run_trial
from crowdveil.mechanisms import OneLayer, RandomizedResponse
from tests.campaign.builders import BuiltCampaign, body_of, build_campaign, response
from tests.campaign.service.accessibility import await_screen, check_page
from tests.campaign.service.browser import campaigning, free_port, leave, needs_chromium, served
from tests.comparison.demo.test_demo import LABELS, small_crowd, trial_of

pytest.importorskip("axe_playwright_python")
pytestmark = [needs_chromium, pytest.mark.slow]
SLOTS, WIDTHS = 6, (390, 1280)
schemes = pytest.mark.parametrize("scheme", ["light", "dark"])


@pytest.fixture
def campaign(tmp_path: Path) -> Iterator[tuple[BuiltCampaign, str]]:
    """A service with curator's pages, one campaign, and its curator's token; all workers but one have reported."""
    port = free_port()
    built = build_campaign(slots=SLOTS, url=f"http://127.0.0.1:{port}", content={"min_reports": SLOTS - 1})
    folder = built.write(tmp_path / "campaign")
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register_campaign(store, CampaignFolder(folder))
    for slot in range(1, SLOTS):
        body = body_of([slot % 3] * 4, built.campaign)
        store.store_report(built.campaign.digest, built.tokens[slot], secrets.token_hex(16), body)
    with served(create_app(store, curator_routes=curator_routes(store)), port):
        yield built, (folder / CURATOR_FILE).read_text("utf-8").strip()
    store.close()


def check_widths(page: Any) -> int:
    """Check a page at every width; return the number of its pictures."""
    counts = set()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        counts.add(check_page(page, width))
    assert 1 == len(counts)
    return counts.pop()


@schemes
def test_the_page_of_the_demo(browser: Any, tmp_path: Path, scheme: str) -> None:
    """Lines, dots and bars have contrast 3:1, their texts 4.5:1."""
    crowd = small_crowd()
    mechanisms = [RandomizedResponse(alphabet=LABELS, epsilon=epsilon) for epsilon in (1.0, 3.0)]
    others = [OneLayer(alphabet=LABELS, epsilon=1.0, participation="public")]
    rows = [row for mechanism in (None, *mechanisms, *others) for row in run_trial(trial_of(crowd, mechanism, 1))]
    (tmp_path / "demo.html").write_text(page_html([crowd], compare_with_unprotected(rows), 1), "utf-8")
    page = browser.new_page(color_scheme=scheme)
    page.goto((tmp_path / "demo.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")

    assert 1 == check_widths(page)
    page.close()


@schemes
def test_the_pages_of_the_curator_and_the_report(
    browser: Any, campaign: tuple[BuiltCampaign, str], scheme: str
) -> None:
    """Pages that lead on, login, wrong token, open campaign, results and the page of results pass."""
    built, token = campaign
    page = browser.new_context(color_scheme=scheme, bypass_csp=True).new_page()
    for path in ("/", "/none", "/curator/results"):
        page.goto(f"{built.campaign.url}{path}")
        check_widths(page)
    page.goto(f"{built.campaign.url}/curator/")
    check_widths(page)
    page.fill("#token", "wrong")
    leave(page, "button")
    check_widths(page)
    page.fill("#token", token)
    leave(page, "button")
    check_widths(page)
    page.check("input[name=confirm]")
    leave(page, "button.danger")
    leave(page, "button:has-text('Infer')")
    check_widths(page)
    leave(page, "a.button")

    assert 4 <= check_widths(page)
    page.context.close()


def test_low_contrast_and_missing_names_are_found(browser: Any, tmp_path: Path) -> None:
    """The check refuses a pale line, a pale text in a picture, and a button without a name."""
    sound = '<html lang="en"><title>t</title><main><h1>h</h1><svg role="img" aria-label="a"><title>a</title>{}</svg>{}'
    page = browser.new_page()
    for mark, button in (
        ('<path stroke="#aaa" fill="none" d="M0 0 9 9"/>', ""),
        ('<text y="20" fill="#888">pale</text>', ""),
        ('<path stroke="#000" fill="none" d="M0 0 9 9"/>', "<button></button>"),
    ):
        page.set_content(sound.format(mark, button))
        with pytest.raises(AssertionError):
            check_page(page, 1280)
    page.set_content(sound.format('<path stroke="#000" fill="none" d="M0 0 9 9"/>', "<button>b</button>"))

    assert 1 == check_page(page, 1280)
    page.close()


@pytest.mark.parametrize("language", ["en-US", "de-DE"])
def test_promise_and_next_are_on_the_first_screen_of_a_phone(browser: Any, tmp_path: Path, language: str) -> None:
    """At 360 x 640 Next needs no scrolling; before the first campaign no epsilon is counted; wide tables scroll."""
    context = browser.new_context(viewport={"width": 360, "height": 640}, locale=language)
    page = context.new_page()
    with campaigning(tmp_path / "one", channels=[response(Scale(0, 19), 2.0)]) as service:
        page.goto(service.link(0))
        await_screen(page, "intro")
        page.click(f"[data-language={language[:2]}]")
        end = page.evaluate("document.getElementById('intro-next').getBoundingClientRect().bottom")
        ledger = page.inner_text("#ledger summary")
        for summary in page.query_selector_all("summary"):
            summary.click()

        assert end <= 640
        assert ledger.endswith(("nothing", "nichts"))
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.evaluate("[...document.querySelectorAll('.scroll')].some(e => e.scrollWidth > e.clientWidth)")
    context.close()

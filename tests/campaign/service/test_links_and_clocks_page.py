"""The worker's page in Chromium: links that mail changed, days and clocks, and browsers that lack a store."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.service.one_file_page import one_file_page
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from tests.campaign.builders import build_campaign, response
from tests.campaign.service.accessibility import await_screen, set_limit
from tests.campaign.service.browser import Campaigning, address_of, campaigning, needs_chromium
from tests.campaign.service.test_page import begin, choose, send, sentence

pytestmark = [needs_chromium, pytest.mark.slow]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Campaigning]:
    """A service with an open campaign of three workers and four tasks."""
    with campaigning(tmp_path) as running:
        yield running


def english(browser: Any, **settings: Any) -> Any:
    """Return a page of a browser that has answered nothing."""
    return browser.new_context(**{"locale": "en-US", "timezone_id": "UTC", **settings}).new_page()


CHANGES = {
    "a full stop": "{link}.",
    "a bracket": "{link})",
    "a comma": "{link},",
    "an angle bracket": "{link}>",
    "a zero-width space": "{link}\u200b",
    "tracking after it": "{link}&utm_source=newsletter",
    "tracking before the number sign": "{address}?utm_source=newsletter{fragment}",
    "without the slash": "{bare}{fragment}",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_link_opens(browser: Any, service: Campaigning, change: str) -> None:
    """A link that mail or chat changed opens from the address, and from a text that is pasted."""
    link, page = service.link(0), english(browser)
    address, sign, rest = link.partition("#")
    places = {"link": link, "address": address, "bare": address.rstrip("/"), "fragment": sign + rest}
    changed = CHANGES[change].format(**places)
    page.goto(changed)
    await_screen(page, "intro")
    assert f"{service.url}/a/" == address_of(page).partition("?")[0]
    other = english(browser)
    other.goto(address)
    await_screen(other, "welcome")
    other.fill("#link", f"Dear Ann, your link is {changed}\nKind regards")
    other.click("#link-form button")

    await_screen(other, "intro")


@pytest.mark.parametrize("length", [1, 2, 20, 60, 72])
def test_a_cut_link_is_called_cut_from_the_address(browser: Any, service: Campaigning, length: int) -> None:
    """A link whose end is missing is called cut where it is opened, and no record is made of it."""
    address, _, rest = service.link(0).partition("#")
    page = english(browser)
    page.goto(f"{address}#{rest[:length]}")
    await_screen(page, "welcome")

    assert ["This link is cut: its end is missing."] == [
        text.partition(" Copy")[0] for text in page.locator("#link-error p:visible").all_inner_texts()
    ]
    assert 0 == page.locator("#open-list button").count()


def test_days_are_named_in_utc_and_on_the_clock_of_the_device(browser: Any, tmp_path: Path) -> None:
    """At UTC+14 the page names the days in UTC, and when they begin and end there."""
    with campaigning(tmp_path, opens=date(2020, 1, 10), closes=date(2099, 1, 17)) as service:
        page = english(browser, timezone_id="Pacific/Kiritimati", locale="de-DE")
        page.goto(service.link(0))
        await_screen(page, "intro")
        said = page.inner_text("#about")
        page.click("[data-language=de]")
        german = page.inner_text("#about")

    assert "10 January 2020 to 17 January 2099, whole days in UTC" in said
    assert "10 Jan 2020, 14:00 GMT+14 to 18 Jan 2099, 14:00 GMT+14" in said
    assert "10. Januar 2020 bis 17. Januar 2099, ganze Tage in UTC" in german
    assert "18. Jan. 2099, 14:00 GMT+14" in german


def test_a_campaign_that_begins_tomorrow_names_the_day(browser: Any, tmp_path: Path) -> None:
    """Before the first day, where the local day is that day already, the page names day and hour before the consent."""
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    with campaigning(tmp_path, opens=tomorrow) as service:
        page = english(browser, timezone_id="Pacific/Kiritimati")
        page.goto(service.link(0))
        said = sentence(page)
        days = page.inner_text("#refused")

    assert f"has not begun yet. It begins on {tomorrow.day} {tomorrow:%B %Y} (UTC)" in said
    assert f"{tomorrow.day} {tomorrow:%b %Y}, 14:00 GMT+14" in days.replace("Sept", "Sep")
    assert "clock of this device shows" not in days, "the clock is right"


@pytest.mark.parametrize("width", [390, 1280])
def test_a_refusal_stands_apart_from_the_header(browser: Any, tmp_path: Path, width: int) -> None:
    """The card of a refusal does not touch the choice of languages above it."""
    with campaigning(tmp_path, closes=date(2020, 1, 2)) as service:
        page = english(browser, viewport={"width": width, "height": 800})
        page.goto(service.link(0))
        await_screen(page, "refused")
        header, card = (page.locator(name).bounding_box() for name in ("header", "#refused .card"))

    assert card["y"] - header["y"] - header["height"] >= 8


@pytest.mark.parametrize("year", [2001, 2150])
def test_a_wrong_clock_decides_nothing_where_there_is_a_service(
    browser: Any, service: Campaigning, tmp_path: Path, year: int
) -> None:
    """With a clock that is years off an open campaign opens; one that is not open is refused in words on the clock."""
    context = browser.new_context(locale="en-US", timezone_id="UTC")
    context.clock.set_fixed_time(f"{year}-05-04T10:00:00Z")
    page = context.new_page()
    begin(page, service.link(0))
    with campaigning(tmp_path / "over", closes=date(2020, 1, 2)) as over:
        page = context.new_page()
        page.goto(over.link(0))

        assert "is closed" in sentence(page)
        assert f"The clock of this device shows 4 May {year}, 10:00 UTC" in page.inner_text("#refused")


@pytest.mark.parametrize(("year", "said"), [(2001, "has not begun yet"), (2150, "is closed")])
def test_a_wrong_clock_is_suspected_in_words_without_a_service(
    browser: Any, tmp_path: Path, year: int, said: str
) -> None:
    """The page in one file knows the clock of the device only: it says what the clock shows."""
    built = build_campaign(url=None)
    (tmp_path / "device.html").write_bytes(one_file_page(CampaignFolder(built.write(tmp_path / "campaign"))))
    context = browser.new_context(locale="en-US", timezone_id="UTC")
    context.clock.set_fixed_time(f"{year}-05-04T10:00:00Z")
    page = context.new_page()
    page.goto(f"{(tmp_path / 'device.html').as_uri()}{built.link(0).text}")

    assert said in sentence(page)
    assert f"The clock of this device shows 4 May {year}, 10:00 UTC. If that is wrong" in page.inner_text("#refused")
    assert "page as a file" not in page.inner_text("#refused")


def test_a_service_that_does_not_tell_the_time_is_no_hindrance(browser: Any, service: Campaigning) -> None:
    """Where the clock of the service is unknown, the days are checked at Start, by the service."""
    page = english(browser)
    page.route("**/healthz", lambda route: route.abort())
    begin(page, service.link(0))


def test_texts_that_were_lost_are_asked_for_again(browser: Any, service: Campaigning) -> None:
    """A connection that drops, or a busy service, while the texts of the page are loaded leaves no empty page."""
    page = english(browser)
    page.route("**/messages.en.json", lambda route: route.abort(), times=1)
    page.route("**/messages.de.json", lambda route: route.fulfill(status=503, body="{}"), times=1)
    begin(page, service.link(0))


NEVER = "Object.defineProperty(StorageManager.prototype, 'persist', { value: () => new Promise(() => {}) });"
FAILS = "Object.defineProperty(StorageManager.prototype, 'persist', { value: () => Promise.reject(new TypeError()) });"
NO_LOCAL_STORAGE = (
    "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('', 'SecurityError'); } });"
)
NULL_LOCAL_STORAGE = "Object.defineProperty(window, 'localStorage', { value: null });"


@pytest.mark.parametrize("lacks", [NEVER, FAILS, NO_LOCAL_STORAGE, NULL_LOCAL_STORAGE])
def test_a_browser_that_lacks_a_store_that_is_not_needed(browser: Any, service: Campaigning, lacks: str) -> None:
    """A question on storage that is never answered, or no store of the language, hinders no report."""
    page = english(browser)
    page.add_init_script(lacks)
    page.goto(service.link(0))
    await_screen(page, "intro")
    page.click("[data-language=de]")
    assert "Was dieses Gerät verlässt" == page.inner_text("#intro-heading")
    page.click("[data-language=en]")
    page.click("#start")
    await_screen(page, "tasks")
    choose(page, 0, "quokka")
    send(page)
    await_screen(page, "done")

    assert 1 == len(service.bodies())


NO_DATABASE = "IDBFactory.prototype.open = () => { throw new DOMException('', 'SecurityError'); };"


@pytest.mark.parametrize("is_file", [False, True])
def test_the_page_in_a_file_is_named_where_one_may_have_been_given(
    browser: Any, service: Campaigning, tmp_path: Path, is_file: bool
) -> None:
    """Without a database the page asks nothing; the served one names the file, which may have been given."""
    page, built = english(browser), build_campaign(url=None)
    page.add_init_script(NO_DATABASE)
    file = tmp_path / "device.html"
    file.write_bytes(one_file_page(CampaignFolder(built.write(tmp_path / "other"))))
    page.goto(f"{file.as_uri()}{built.link(0).text}" if is_file else service.link(0))

    assert "cannot store the report safely" in sentence(page)
    assert is_file != page.get_by_text("If you were given this page as a file").is_visible()


@pytest.mark.parametrize("own", [False, True])
def test_a_limit_that_nobody_set_is_not_the_workers(browser: Any, tmp_path: Path, own: bool) -> None:
    """Above 10 the page warns by itself; only a limit that the worker chose is called the worker's."""
    with campaigning(tmp_path, tasks=12) as service:
        page = english(browser)
        page.goto(service.link(0))
        await_screen(page, "intro")
        if own:
            page.click("#ledger summary")
            set_limit(page, "9")
        page.click("#start")
        await_screen(page, "tasks")
        page.click("#task-form button")
        await_screen(page, "review")
        warnings = page.locator("#review .warning:visible").all_inner_texts()

    assert 1 == len(warnings)
    assert ("above your limit of 9" in warnings[0], "This page warns above 10" in warnings[0]) == (own, not own)


OVERFLOWS = """() => Array.from(document.querySelectorAll("#tasks .option"))
  .filter((option) => option.scrollWidth > option.clientWidth).map((option) => option.innerText)"""


@pytest.mark.parametrize("width", [360, 390, 1280])
@pytest.mark.parametrize(
    "alphabet",
    [Categories(("no", "yes")), Categories(("WWWW", "i")), Scale(0, 10), Scale(-2.5, 2.5, 0.5), Scale(96, 102)],
)
def test_a_short_label_lies_in_its_box(browser: Any, tmp_path: Path, alphabet: Alphabet, width: int) -> None:
    """Labels of up to four characters stand side by side, and none reaches beyond its box."""
    with campaigning(tmp_path, channels=[response(alphabet)]) as service:
        page = english(browser, viewport={"width": width, "height": 800})
        begin(page, service.link(0))

        assert [] == page.evaluate(OVERFLOWS)
        assert 4 == page.locator("#tasks .grid").count()

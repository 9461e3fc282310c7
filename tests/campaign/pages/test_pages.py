"""Curator's pages: login, protection of forms, one number while open, results and downloads after closing."""

import logging
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from starlette.testclient import TestClient

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.pages import session
from crowdveil.campaign.pages.pages import curator_routes
from crowdveil.campaign.pages.results import DOWNLOADS
from crowdveil.campaign.pages.session import COOKIE, MAX_COOKIE, SESSION_SECONDS
from crowdveil.campaign.rules.document import spaced_name_to_compare
from crowdveil.campaign.service.app import create_app
from crowdveil.campaign.service.campaign_registration import CURATOR_FILE, register_campaign
from crowdveil.campaign.service.store import Store
from crowdveil.errors import SettingsError
from crowdveil.pages.results_page import content_security_policy
from tests.campaign.builders import BuiltCampaign, body_of, build_campaign
from tests.campaign.hostile import MARK, hostile_campaign, outside_quotes_of_page, write_picture

HOST = "https://grades.example.org"
SLOTS, LEAST = 9, 6
FORM = "application/x-www-form-urlencoded"
Post = Callable[..., httpx.Response]


@pytest.fixture
def built() -> BuiltCampaign:
    """A campaign of nine workers, of whom six must report."""
    return build_campaign(tasks=4, slots=SLOTS, content={"min_reports": LEAST, "title": "Animals <in> Chile"})


@pytest.fixture
def client(store: Store) -> Iterator[TestClient]:
    """A browser that is not logged in."""
    app = create_app(store, curator_routes=curator_routes(store))
    with TestClient(app, base_url=HOST, follow_redirects=False) as opened:
        yield opened


@pytest.fixture
def token(tmp_path: Path, store: Store) -> str:
    """The curator's token."""
    return (tmp_path / "campaign" / CURATOR_FILE).read_text("utf-8").strip()


@pytest.fixture
def post(client: TestClient) -> Post:
    """Send a form as a browser does, with the Origin of the page and the session's hidden field."""

    def send(path: str, *, origin: str | None = HOST, csrf: str | None = None, **fields: str) -> httpx.Response:
        hidden = hidden_field(client) if csrf is None and path != "login" else csrf
        headers = {"Content-Type": FORM, **({} if origin is None else {"Origin": origin})}
        form = urlencode(fields | ({} if hidden is None else {"csrf": hidden}))
        return client.post(f"/curator/{path}", content=form, headers=headers)

    return send


@pytest.fixture
def logged_in(client: TestClient, post: Post, token: str) -> TestClient:
    """A browser of the curator."""
    assert post("login", token=token).status_code == 303
    return client


def hidden_field(client: TestClient) -> str:
    """The value that forms carry."""
    found = re.search('name="csrf" value="([0-9a-f]+)"', client.get("/curator/").text)
    return found[1] if found else ""


def send_reports(store: Store, built: BuiltCampaign, stop: int, *, first: int = 0) -> None:
    """Store the reports of the slots first .. stop-1: every worker sends the first label."""
    for slot in range(first, stop):
        body = body_of([0] * 4, built.campaign)
        store.store_report(built.campaign.digest, built.tokens[slot], secrets.token_hex(16), body)


def test_login_sets_a_cookie_that_scripts_and_other_sites_cannot_use(post: Post, token: str) -> None:
    """The cookie is bound to the host, sent over TLS only, hidden from scripts and from requests of other sites."""
    cookie = post("login", token=token).headers["set-cookie"]

    assert cookie.startswith(f"{COOKIE}=")
    assert token not in cookie
    for attribute in ("HttpOnly", "Secure", "SameSite=strict", "Path=/", f"Max-Age={SESSION_SECONDS}"):
        assert f"; {attribute}" in cookie
    assert "Domain" not in cookie


@pytest.mark.parametrize("given", ["", "x" * 43, "é" * 43, "x" * 3000])
def test_another_token_is_refused(client: TestClient, post: Post, given: str) -> None:
    """Another token gives the login page with a sentence, and no cookie."""
    reply = post("login", token=given)

    assert 401 == reply.status_code
    assert "no campaign with this token" in reply.text
    assert "set-cookie" not in reply.headers


@pytest.mark.slow
@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", f"{HOST}.evil.example", "http://[", "https://[::1"]
)
@pytest.mark.parametrize("path", ["login", "close", "infer", "logout"])
def test_forms_of_other_sites_are_refused(
    logged_in: TestClient, post: Post, token: str, store: Store, built: BuiltCampaign, origin: str | None, path: str
) -> None:
    """A form without the Origin of this host changes nothing."""
    reply = post(path, origin=origin, token=token, confirm="close")

    assert 403 == reply.status_code
    assert "open" == store.state(built.campaign.digest)


@pytest.mark.parametrize("csrf", ["", "0" * 64])
@pytest.mark.parametrize("path", ["close", "infer", "logout"])
def test_forms_without_the_hidden_value_are_refused(
    logged_in: TestClient, post: Post, store: Store, built: BuiltCampaign, csrf: str, path: str
) -> None:
    """A form without the session's hidden value changes nothing."""
    assert 403 == post(path, csrf=csrf, confirm="close").status_code
    assert "open" == store.state(built.campaign.digest)


def test_without_session_there_is_only_the_login(client: TestClient, post: Post) -> None:
    """Results, files and forms need a session; the home page shows the login."""
    assert 'name="token"' in client.get("/curator/").text
    assert "Animals" not in client.get("/curator/").text
    for path in ("results", "files/reports.csv"):
        assert 403 == client.get(f"/curator/{path}").status_code
    for path in ("close", "infer", "logout"):
        assert 403 == post(path, csrf="0" * 64).status_code


def test_without_session_a_person_is_led_to_the_login(client: TestClient, post: Post) -> None:
    """The address without its slash leads to the login; other pages, and forms that are too old, have a way to it."""
    reply = client.get("/curator")
    assert (308, "curator/") == (reply.status_code, reply.headers["location"])
    for path, way in (("results", "../curator/"), ("files/truths.csv", "../../curator/")):
        page = client.get(f"/curator/{path}", headers={"Accept": "text/html"})
        assert 403 == page.status_code
        assert "You are not logged in" in page.text
        assert f'href="{way}">Log in' in page.text


def test_pages_name_one_another_by_relative_addresses(
    logged_in: TestClient, post: Post, store: Store, built: BuiltCampaign
) -> None:
    """No page of the curator names an address from the root: a proxy may serve all of them below a path."""
    send_reports(store, built, SLOTS)
    pages = [logged_in.get("/curator/").text, post("close").text]
    replies = []
    for form, confirmed in (("close", {"confirm": "close"}), ("infer", {}), ("logout", {})):
        replies.append(post(form, **confirmed))
        pages.append(logged_in.get("/curator/").text)
    pages.append(post("login", token="x" * 43).text)
    named = [address for page in pages for address in re.findall('(?:href|src|action)="([^"]*)"', page)]

    assert ["./"] * 3 == [reply.headers["location"] for reply in replies]
    assert {"close", "infer", "logout", "login", "style.css", "results", "files/truths.csv"} <= set(named)
    assert [] == [address for address in named if address.startswith("/") or ":" in address]


def test_a_changed_or_old_cookie_is_no_session(
    logged_in: TestClient, monkeypatch: pytest.MonkeyPatch, built: BuiltCampaign
) -> None:
    """A cookie with another signature, or older than eight hours, shows the login."""
    value = logged_in.cookies[COOKIE]
    logged_in.cookies.clear()
    for changed in (value[:-2], "x" + value, "", ".."):
        page = logged_in.get("/curator/", headers={"Cookie": f"{COOKIE}={changed}"}).text
        assert 'name="token"' in page
    monkeypatch.setattr(session, "SESSION_SECONDS", -1)

    assert 'name="token"' in logged_in.get("/curator/", headers={"Cookie": f"{COOKIE}={value}"}).text


def test_an_open_campaign_shows_one_number(logged_in: TestClient, store: Store, built: BuiltCampaign) -> None:
    """Below the least number of reports no count is shown; above it, the count alone."""
    send_reports(store, built, LEAST - 1)
    before = logged_in.get("/curator/").text
    send_reports(store, built, LEAST + 1, first=LEAST - 1)
    after = logged_in.get("/curator/").text

    assert spaced_name_to_compare(built.campaign.name) in before
    assert f"<dd>fewer than {LEAST}</dd>" in before
    assert f"<dd>{LEAST - 1}</dd>" not in before
    assert f"<dd>{LEAST + 1}</dd>" in after
    assert "Downloads" not in after


def test_an_open_campaign_gives_no_results(
    logged_in: TestClient, post: Post, store: Store, built: BuiltCampaign
) -> None:
    """While the campaign is open there are no results and no files, whatever was reported."""
    send_reports(store, built, SLOTS)
    for reply in (post("infer"), logged_in.get("/curator/results"), logged_in.get("/curator/files/reports.csv")):
        assert 409 == reply.status_code
        assert "task-0,w0" not in reply.text


def test_closing_needs_a_confirmation(logged_in: TestClient, post: Post, store: Store, built: BuiltCampaign) -> None:
    """Without the check mark the campaign stays open."""
    assert 400 == post("close").status_code
    assert "open" == store.state(built.campaign.digest)
    assert 303 == post("close", confirm="close").status_code
    assert "closed" == store.state(built.campaign.digest)


def test_a_closing_that_is_not_complete_says_so(
    logged_in: TestClient, post: Post, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign whose files could not be rewritten shows the reason, and not a failure of the service."""

    def fail(*_: object) -> None:
        raise SettingsError("the files must be rewritten", value="busy")

    monkeypatch.setattr(store, "close_and_count_reports", fail)
    reply = post("close", confirm="close")

    assert (409, True) == (reply.status_code, "the files must be rewritten" in reply.text)


def test_numbers_of_one_have_no_plural(tmp_path: Path) -> None:
    """A campaign of one task that needs one report speaks of 1 answer and 1 report."""
    built = build_campaign(tasks=1, content={"min_reports": 1})
    store = Store.open(f"sqlite:///{tmp_path / 'one.sqlite'}")
    folder = CampaignFolder(built.write(tmp_path / "one"))
    register_campaign(store, folder)
    app = create_app(store, curator_routes=curator_routes(store))
    with TestClient(app, base_url=HOST, follow_redirects=True) as client:
        form = urlencode({"token": (folder.path / CURATOR_FILE).read_text("utf-8").strip()})
        page = client.post("/curator/login", content=form, headers={"Content-Type": FORM, "Origin": HOST}).text
    store.close()

    assert "at most 1 answer<" in page
    assert "with at least 1 report." in page


def test_too_few_reports_are_never_released(
    logged_in: TestClient, post: Post, store: Store, built: BuiltCampaign
) -> None:
    """A campaign that ended below the least number of reports has no results."""
    send_reports(store, built, LEAST - 1)
    post("close", confirm="close")

    assert "nothing is released" in logged_in.get("/curator/").text
    for reply in (post("infer"), logged_in.get("/curator/files/truths.csv")):
        assert 409 == reply.status_code


def test_results_and_downloads_after_closing(
    logged_in: TestClient, post: Post, store: Store, built: BuiltCampaign
) -> None:
    """A closed campaign gives the page of results with its own policy, and every file that infer read and wrote."""
    send_reports(store, built, SLOTS - 1)
    post("close", confirm="close")
    assert 303 == post("infer").status_code
    overview, page = logged_in.get("/curator/").text, logged_in.get("/curator/results")

    assert content_security_policy() in page.headers["content-security-policy"]
    assert built.campaign.name in page.text
    assert "Every answer is protected by local differential privacy." in page.text
    assert "holder of the answers" not in page.text
    assert "w0000" not in page.text
    for name in DOWNLOADS.keys() - {"ranks.csv", "pairs.csv"}:
        reply = logged_in.get(f"/curator/files/{name}")
        assert 200 == reply.status_code
        assert f'attachment; filename="{name}"' == reply.headers["content-disposition"]
        assert f'href="files/{name}"' in overview
    assert built.campaign.to_bytes() == logged_in.get("/curator/files/campaign.json").content
    assert 404 == logged_in.get("/curator/files/curator-token.txt").status_code


def test_a_purged_campaign_ends_the_session(
    logged_in: TestClient, post: Post, store: Store, built: BuiltCampaign
) -> None:
    """After the purge neither results nor login are left."""
    send_reports(store, built, SLOTS)
    post("close", confirm="close")
    post("infer")
    store.purge(built.campaign.digest)

    assert 403 == logged_in.get("/curator/results").status_code
    assert 'name="token"' in logged_in.get("/curator/").text


def test_pages_have_no_scripts_and_escape_names(logged_in: TestClient) -> None:
    """Texts of the campaign are shown as text; the policy forbids scripts, and pages are not stored."""
    reply = logged_in.get("/curator/")

    assert "Animals &lt;in&gt; Chile" in reply.text
    assert "<script" not in reply.text
    assert "script-src 'none'" in reply.headers["content-security-policy"]
    assert "no-store" == reply.headers["cache-control"]
    assert "same-origin" == reply.headers["referrer-policy"]


def test_a_cookie_that_was_logged_out_is_no_session(
    logged_in: TestClient, post: Post, token: str, store: Store
) -> None:
    """A copy of the cookie opens nothing after the logout, in a process that was restarted either; a login does."""
    copied = {"Cookie": f"{COOKIE}={logged_in.cookies[COOKIE]}"}
    post("logout")
    again = TestClient(create_app(store, curator_routes=curator_routes(store)), base_url=HOST)

    for browser in (logged_in, again):
        assert 'name="token"' in browser.get("/curator/", headers=copied).text
        assert 403 == browser.get("/curator/results", headers=copied).status_code
    assert 303 == post("login", token=token).status_code
    assert "Animals" in logged_in.get("/curator/").text


def test_long_and_foreign_forms_are_refused(client: TestClient) -> None:
    """A form that is too long, or of another type, is refused before it is read as a whole."""
    headers = {"Origin": HOST, "Content-Type": FORM}
    long = client.post("/curator/login", content="token=" + "x" * 10_000, headers=headers)
    foreign = client.post("/curator/login", content="{}", headers=headers | {"Content-Type": "application/json"})
    binary = client.post("/curator/login", content=b"token=\xff", headers=headers)

    assert [413, 415, 400] == [long.status_code, foreign.status_code, binary.status_code]


def test_logs_hold_no_token(logged_in: TestClient, token: str, caplog: pytest.LogCaptureFixture) -> None:
    """Log lines of the pages hold neither the curator's token nor the cookie."""
    caplog.set_level(logging.DEBUG)
    logged_in.get("/curator/")
    logged_in.get(f"/curator/files/{token}")

    assert token not in caplog.text.replace(f"/curator/files/{token}", "")
    assert logged_in.cookies[COOKIE] not in caplog.text


def test_a_long_cookie_is_not_decompressed(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cookie longer than any of the service is refused before it is read: its content may be compressed."""
    monkeypatch.setattr(session, "_serializer", lambda _: pytest.fail("the cookie was read"))

    response = client.get("/curator/", headers={"Cookie": f"{COOKIE}={'.' + 'A' * MAX_COOKIE}"})

    assert 200 == response.status_code


class TestWordsOfOthers:
    """The curator's pages of a campaign that holds false promises."""

    @pytest.fixture
    def built(self, tmp_path: Path) -> BuiltCampaign:
        """A campaign with false promises in every text and name."""
        write_picture(tmp_path / "campaign")
        return hostile_campaign(slots=SLOTS)

    def test_the_overview_quotes_title_and_question(self, logged_in: TestClient) -> None:
        """Beside the epsilons of the campaign its texts stand in quotes."""
        page = logged_in.get("/curator/").text

        assert MARK in page
        assert MARK not in outside_quotes_of_page(page)

"""Curator's pages: the token, forms of other sites, one number while open, results and downloads after closing."""

import logging
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from crowdveil.campaign.document import characters_to_compare
from crowdveil.errors import SettingsError
from crowdveil.release.results_page import content_security_policy
from crowdveil.service.app import create_app
from crowdveil.service.campaign_registration import CURATOR_FILE
from crowdveil.service.curator.pages import curator_routes
from crowdveil.service.curator.results import DOWNLOADS
from crowdveil.service.store import Store
from tests.campaign.builders import BuiltCampaign, body_of, build_campaign

HOST = "https://grades.example.org"
SLOTS, LEAST = 9, 6
Post = Callable[..., httpx.Response]


@pytest.fixture
def built() -> BuiltCampaign:
    """A campaign of nine workers, of whom six must report."""
    return build_campaign(tasks=4, slots=SLOTS, content={"min_reports": LEAST, "title": "Animals <in> Chile"})


@pytest.fixture
def client(store: Store) -> Iterator[TestClient]:
    """A browser without the token."""
    app = create_app(store, curator_routes=curator_routes(store))
    with TestClient(app, base_url=HOST, follow_redirects=False) as opened:
        yield opened


@pytest.fixture
def token(tmp_path: Path, store: Store) -> str:
    """The curator's token."""
    return (tmp_path / "campaign" / CURATOR_FILE).read_text("utf-8").strip()


@pytest.fixture
def curator(client: TestClient, token: str) -> TestClient:
    """A browser of the curator."""
    client.auth = httpx.BasicAuth("", token)
    return client


@pytest.fixture
def post(client: TestClient) -> Post:
    """Send a form as a browser does, with the Origin of the page."""
    return lambda path, origin=HOST: client.post(
        f"/curator/{path}", headers={} if origin is None else {"Origin": origin}
    )


def send_reports(store: Store, built: BuiltCampaign, stop: int, *, first: int = 0) -> None:
    """Store the reports of the slots first .. stop-1: every worker sends the first label."""
    for slot in range(first, stop):
        body = body_of([0] * 4, built.campaign)
        store.store_report(built.campaign.digest, built.tokens[slot], secrets.token_hex(16), body)


@pytest.mark.parametrize("given", [None, "Bearer {}", "Basic {}", "", "x" * 43, "é" * 43, "x" * 3000])
def test_every_page_needs_the_token(
    client: TestClient, post: Post, token: str, store: Store, built: BuiltCampaign, given: str | None
) -> None:
    """Without the token, or with another one, nothing is shown or changed, and the browser asks for it."""
    if given is not None and "{}" in given:
        client.headers["Authorization"] = given.format(token)
    elif given is not None:
        client.auth = httpx.BasicAuth("curator", given)
    replies = [client.get(f"/curator/{path}") for path in ("", "results", "files/reports.csv")]
    replies += [post(path) for path in ("close", "infer")]

    for reply in replies:
        assert (401, "no-store") == (reply.status_code, reply.headers["cache-control"])
        assert reply.headers["www-authenticate"].startswith("Basic realm=")
        assert "Animals" not in reply.text
    assert "open" == store.state(built.campaign.digest)


@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", f"{HOST}.evil.example", "http://[", "https://[::1"]
)
@pytest.mark.parametrize("path", ["close", "infer"])
def test_forms_of_other_sites_are_refused(
    curator: TestClient, post: Post, store: Store, built: BuiltCampaign, origin: str | None, path: str
) -> None:
    """A form without the Origin of this host changes nothing, although the browser adds the token."""
    assert 403 == post(path, origin).status_code
    assert "open" == store.state(built.campaign.digest)


def test_an_open_campaign_shows_one_number(curator: TestClient, store: Store, built: BuiltCampaign) -> None:
    """Below the least number of reports no count is shown; above it, the count alone."""
    send_reports(store, built, LEAST - 1)
    before = curator.get("/curator/").text
    send_reports(store, built, LEAST + 1, first=LEAST - 1)
    after = curator.get("/curator/").text

    assert characters_to_compare(built.campaign.name) in before
    assert f"<dd>fewer than {LEAST}</dd>" in before
    assert f"<dd>{LEAST - 1}</dd>" not in before
    assert f"<dd>{LEAST + 1}</dd>" in after
    assert "Downloads" not in after


def test_an_open_campaign_gives_no_results(curator: TestClient, post: Post, store: Store, built: BuiltCampaign) -> None:
    """While the campaign is open there are no results and no files, whatever was reported."""
    send_reports(store, built, SLOTS)
    for reply in (post("infer"), curator.get("/curator/results"), curator.get("/curator/files/reports.csv")):
        assert 409 == reply.status_code
        assert "task-0,w0" not in reply.text


def test_a_closing_that_is_not_complete_says_so(
    curator: TestClient, post: Post, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign whose files could not be rewritten shows the reason, and not a failure of the service."""

    def fail(*_: object) -> None:
        raise SettingsError("the files must be rewritten", value="busy")

    monkeypatch.setattr(store, "close_campaign", fail)
    reply = post("close")

    assert (409, True) == (reply.status_code, "the files must be rewritten" in reply.text)


def test_too_few_reports_are_never_released(
    curator: TestClient, post: Post, store: Store, built: BuiltCampaign
) -> None:
    """A campaign that ended below the least number of reports has no results."""
    send_reports(store, built, LEAST - 1)
    post("close")

    assert "nothing is released" in curator.get("/curator/").text
    for reply in (post("infer"), curator.get("/curator/files/truths.csv")):
        assert 409 == reply.status_code


def test_results_and_downloads_after_closing(
    curator: TestClient, post: Post, store: Store, built: BuiltCampaign
) -> None:
    """A closed campaign gives the page of results with its own policy, and every file that infer read and wrote."""
    send_reports(store, built, SLOTS - 1)
    post("close")
    assert 303 == post("infer").status_code
    overview, page = curator.get("/curator/").text, curator.get("/curator/results")

    assert content_security_policy() in page.headers["content-security-policy"]
    assert built.campaign.name in page.text
    assert "Every answer is protected by local differential privacy." in page.text
    assert "holder of the answers" not in page.text
    assert "w0000" not in page.text
    for name in DOWNLOADS:
        reply = curator.get(f"/curator/files/{name}")
        assert 200 == reply.status_code
        assert f'attachment; filename="{name}"' == reply.headers["content-disposition"]
        assert f"/curator/files/{name}" in overview
    assert built.campaign.to_bytes() == curator.get("/curator/files/campaign.json").content
    assert 404 == curator.get("/curator/files/curator-token.txt").status_code


def test_the_token_of_a_purged_campaign_is_none(
    curator: TestClient, post: Post, store: Store, built: BuiltCampaign
) -> None:
    """After the purge no page is left."""
    send_reports(store, built, SLOTS)
    post("close")
    post("infer")
    store.purge(built.campaign.digest)

    assert [401, 401] == [curator.get(f"/curator/{path}").status_code for path in ("", "results")]


def test_pages_have_no_scripts_and_escape_names(curator: TestClient) -> None:
    """Texts of the campaign are shown as text; the policy forbids scripts, and pages are not stored."""
    reply = curator.get("/curator/")

    assert "Animals &lt;in&gt; Chile" in reply.text
    assert "<script" not in reply.text
    assert "script-src 'none'" in reply.headers["content-security-policy"]
    assert "no-store" == reply.headers["cache-control"]
    assert "same-origin" == reply.headers["referrer-policy"]


def test_logs_hold_no_token(curator: TestClient, token: str, caplog: pytest.LogCaptureFixture) -> None:
    """Log lines of the pages do not hold the curator's token."""
    caplog.set_level(logging.DEBUG)
    curator.get("/curator/")
    curator.get(f"/curator/files/{token}")

    assert token not in caplog.text.replace(f"/curator/files/{token}", "")

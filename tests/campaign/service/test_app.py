"""Addresses, checks, headers and refusals of the HTTP interface."""

import json
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from openapi_spec_validator import validate
from starlette.routing import Route
from starlette.testclient import TestClient

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.rules.document import Task
from crowdveil.campaign.rules.token import Token
from crowdveil.campaign.service.app import create_app
from crowdveil.campaign.service.campaign_registration import register_campaign
from crowdveil.campaign.service.problems import PROBLEMS, REPORT_MEDIA_TYPE
from crowdveil.campaign.service.store import Store
from tests.campaign.builders import BuiltCampaign, build_campaign

BODY = b"\0\1\2\3"


@pytest.fixture
def client(store: Store) -> Iterator[TestClient]:
    """A client of the application."""
    with TestClient(create_app(store)) as opened:
        yield opened


def bearer(token: Token) -> dict[str, str]:
    """The header with a token."""
    return {"Authorization": f"Bearer {token.text}"}


def report_headers(token: Token) -> dict[str, str]:
    """The headers of a report."""
    return {**bearer(token), "Content-Type": REPORT_MEDIA_TYPE}


def address(built: BuiltCampaign, rest: str = "") -> str:
    """An address below the campaign."""
    return f"/v1/campaigns/{built.campaign.name}{rest}"


def new_report(built: BuiltCampaign) -> str:
    """The address of a new report."""
    return address(built, f"/reports/{secrets.token_hex(16)}")


def assert_problem(response: Any, name: str) -> None:
    """Check that a response is a refusal of this name, with the headers of its kind."""
    assert PROBLEMS[name].status == response.status_code
    assert "application/problem+json" == response.headers["content-type"]
    assert f"/problems/{name}" == response.json()["type"]


def test_documents_are_served_byte_for_byte_and_are_immutable(client: TestClient, built: BuiltCampaign) -> None:
    """The campaign and its parts have the media type of campaigns, and never change."""
    document, part = client.get(address(built)), client.get(address(built, "/parts/0"))

    assert built.campaign.to_bytes() == document.content
    assert built.parts[0].to_bytes() == part.content
    for response in (document, part):
        assert "application/vnd.crowdveil.campaign.v1+json" == response.headers["content-type"]
        assert "immutable" in response.headers["cache-control"]


def test_a_report_is_stored_once_and_its_receipt_can_be_read(client: TestClient, built: BuiltCampaign) -> None:
    """PUT has the receipt, a retry and GET have the same one, and the state of the link changes."""
    token, target = built.tokens[0], new_report(built)
    before = client.get(address(built, "/link"), headers=bearer(token)).json()

    first = client.put(target, content=BODY, headers=report_headers(token))

    again = client.put(target, content=BODY[::-1], headers=report_headers(token))
    assert sha256(BODY).hexdigest() == json.loads(first.content)["stored_sha256"]
    assert (200, first.content) == (again.status_code, again.content)
    assert first.content == client.get(target, headers=bearer(token)).content
    assert {"state": "unused", "campaign": "open"} == before
    assert {"state": "used", "campaign": "open"} == client.get(address(built, "/link"), headers=bearer(token)).json()
    assert "no-store" == first.headers["cache-control"]


def test_unknown_addresses_and_methods_are_refused(client: TestClient, built: BuiltCampaign) -> None:
    """An address without content is 404, a method that it lacks is 405 and names the methods there are."""
    other = urlsafe_b64encode(bytes(32)).rstrip(b"=").decode()
    token = bearer(built.tokens[0])

    for path in (
        "/none",
        "/a/none",
        f"/v1/campaigns/{other}",
        "/v1/campaigns/x",
        "/static/none.css",
        "/static/..%2fapp.py",
    ):
        assert_problem(client.get(path), "unknown")
    assert_problem(client.get("/static/..%2fapp.py"), "unknown")
    for path in ("/parts/1", "/parts/00", "/parts/-1", "/pictures/" + "0" * 64, "/pictures/x"):
        assert_problem(client.get(address(built, path)), "unknown")
    assert_problem(client.get(new_report(built), headers=token), "unknown")
    assert_problem(client.get(address(built, "/reports/XYZ"), headers=token), "report-id")
    refused = client.post(address(built))
    assert_problem(refused, "method")
    assert {"GET", "HEAD"} == set(refused.headers["allow"].split(", "))


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_an_address_without_its_slash_leads_to_the_page(client: TestClient) -> None:
    """`/a` leads to `/a/` below whatever path a proxy serves, so the address is relative."""
    reply = client.get("/a", follow_redirects=False)

    assert (308, "a/") == (reply.status_code, reply.headers["location"])


@pytest.mark.parametrize(
    ("path", "status", "heading"),
    [("/", 200, "collects answers"), ("/none", 404, "nothing at"), ("/x/y/%231.cut", 404, "nothing at")],
)
def test_a_person_gets_a_page(client: TestClient, path: str, status: int, heading: str) -> None:
    """A browser gets a page in its language that leads to the worker's page; a program gets the problem."""
    page = client.get(path, headers=BROWSER)
    german = client.get(path, headers={**BROWSER, "Accept-Language": "de-AT,de;q=0.9"})

    assert (status, "text/html; charset=utf-8") == (page.status_code, page.headers["content-type"])
    assert heading in page.text
    assert ("en", "de") == tuple(reply.text.partition('lang="')[2][:2] for reply in (page, german))
    found = re.findall('(?:href|src)="([^"]*)"', page.text)
    assert {"a/", "static/icon.svg", "static/style.css"} == {
        link.replace("../", "").removeprefix("./") for link in found
    }
    assert [200, 200, 200] == [client.get(urljoin(path, link)).status_code for link in found]
    assert "script" not in page.text
    if status != 200:
        assert_problem(client.get(path), "unknown")
        assert_problem(client.get(f"/v1{path}", headers=BROWSER), "unknown")


def test_every_page_has_a_picture(client: TestClient) -> None:
    """The worker's page names the picture of its tab, and browsers that ask elsewhere get it, too."""
    icon = client.get("/favicon.ico")

    assert 'rel="icon" href="../static/icon.svg"' in client.get("/a/").text
    assert (200, "image/svg+xml") == (icon.status_code, icon.headers["content-type"])


@pytest.mark.parametrize(("scheme", "named"), [("https", True), ("http", False)])
def test_browsers_keep_to_https_where_the_service_has_a_certificate(store: Store, scheme: str, named: bool) -> None:
    """Over TLS of its own every reply says that this host is opened over https only; over plain HTTP none does."""
    with TestClient(create_app(store), base_url=f"{scheme}://grades.example.org") as client:
        replies = [client.get(path) for path in ("/a/", "/none", "/healthz")]

    assert [named] * 3 == ["strict-transport-security" in reply.headers for reply in replies]


def test_the_order_of_checks(client: TestClient, built: BuiltCampaign) -> None:
    """Of several faults, the first in the order address, length, media type, token, symbols is named."""
    good = report_headers(built.tokens[0])
    target, bad_symbol = new_report(built), b"\xff" * 4

    assert_problem(client.put(address(built, "/reports/x"), content=b"", headers={}), "report-id")
    assert_problem(client.put(target, content=b"\0" * 5, headers={}), "too-long")
    assert_problem(client.put(target, content=b"\0" * 3, headers={}), "length")
    assert_problem(client.put(target, content=iter([BODY]), headers=good), "no-length")
    assert_problem(client.put(target, content=bad_symbol, headers={}), "media-type")
    assert_problem(client.put(target, content=bad_symbol, headers={**good, "Content-Type": "text/plain"}), "media-type")
    assert_problem(client.put(target, content=bad_symbol, headers={"Content-Type": REPORT_MEDIA_TYPE}), "token")
    assert_problem(client.put(target, content=bad_symbol, headers=report_headers(Token.new(0))), "token")
    assert_problem(client.put(target, content=bad_symbol, headers=good), "symbol")


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer x", "Basic YTpi", "Bearer " + "!" * 27, "Bearer " + "A" * 28])
def test_a_malformed_token_has_the_reply_of_an_unknown_one(
    client: TestClient, built: BuiltCampaign, given: str
) -> None:
    """A header that holds no token is refused as an unknown token, with the scheme to use."""
    refused = client.get(address(built, "/link"), headers={"Authorization": given})
    unknown = client.get(address(built, "/link"), headers=bearer(Token.new(1)))

    assert_problem(refused, "token")
    assert unknown.content == refused.content
    assert "Bearer" == refused.headers["www-authenticate"]


def test_closed_and_purged_campaigns_are_gone(client: TestClient, store: Store, built: BuiltCampaign) -> None:
    """After closing, reports are refused and documents stay; after a purge, everything is gone."""
    store.close_and_count_reports(built.campaign.digest)
    headers = report_headers(built.tokens[0])

    assert_problem(client.put(new_report(built), content=BODY, headers=headers), "closed")
    assert "closed" == client.get(address(built, "/link"), headers=headers).json()["campaign"]
    assert 200 == client.get(address(built)).status_code
    store.purge(built.campaign.digest)
    for path in ("", "/parts/0", "/link", "/reports/" + "0" * 32):
        assert_problem(client.get(address(built, path), headers=headers), "purged")
    assert_problem(client.put(new_report(built), content=BODY, headers=headers), "purged")


def test_every_response_has_the_security_headers(client: TestClient, built: BuiltCampaign) -> None:
    """No response allows scripts from elsewhere, names its server, sets a cookie or opens itself to other origins."""
    for response in (client.get("/a/"), client.get(address(built)), client.get("/none"), client.get("/healthz")):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "no-referrer" == response.headers["referrer-policy"]
        assert "nosniff" == response.headers["x-content-type-options"]
        assert {"server", "set-cookie", "access-control-allow-origin"} & set(response.headers) == set()


def test_static_files_are_revalidated(client: TestClient) -> None:
    """A file with a known entity tag is not sent again."""
    first = client.get("/openapi.json")

    again = client.get("/openapi.json", headers={"If-None-Match": first.headers["etag"]})

    assert (304, b"") == (again.status_code, again.content)
    assert "no-cache" == first.headers["cache-control"]


def test_the_service_is_ready_while_the_database_answers(client: TestClient, store: Store) -> None:
    """Readiness needs the newest schema; liveness does not."""
    assert {"status": "ready"} == client.get("/readyz").json()
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE schema_version SET version = 0")

    refused = client.get("/readyz")
    assert_problem(refused, "busy")
    assert "5" == refused.headers["retry-after"]
    assert {"status": "alive"} == client.get("/healthz").json()


def test_the_description_names_every_route_and_reply(client: TestClient, store: Store) -> None:
    """`openapi.json` is valid, has exactly the routes of the application, and names every problem."""
    description = client.get("/openapi.json").json()
    routes = {
        (route.path, method)
        for route in create_app(store).routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }

    validate(description)
    assert routes == {(path, method.upper()) for path, methods in description["paths"].items() for method in methods}
    text = json.dumps(description)
    for name in set(PROBLEMS) - {"forbidden", "method", "internal", "batch"}:
        assert f"`{name}`" in text


def test_pictures_are_served_with_their_type(tmp_path: Path) -> None:
    """A picture of a task has its own bytes and media type."""
    from hashlib import sha256

    from crowdveil.campaign.rules.document import Picture

    data = b"\x89PNG\r\n\x1a\n" + bytes(20)
    digest = sha256(data).hexdigest()
    task = Task("t0", "Picture 0", Picture(digest, "image/png", len(data), "an animal"))
    built = build_campaign(tasks=1, content={"tasks": (task,)})
    folder = built.write(tmp_path / "campaign")
    (folder / "pictures").mkdir()
    (folder / "pictures" / digest).write_bytes(data)
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register_campaign(store, CampaignFolder(folder))

    with TestClient(create_app(store)) as client:
        response = client.get(address(built, f"/pictures/{digest}"))

    assert (data, "image/png") == (response.content, response.headers["content-type"])
    store.close()

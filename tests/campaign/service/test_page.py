"""The worker's page in Chromium, against the service: every way through it ends in a report or in a sentence."""

import base64
import json
import logging
from collections.abc import Iterator
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.rules.canonical_json import canonical_bytes
from crowdveil.campaign.rules.document import Picture, Task, base64url_of_digest
from crowdveil.campaign.rules.report import NOT_ANSWERED, decode_body
from crowdveil.channels.alphabet import Scale
from crowdveil.standalone.checks import digest, epsilon, shown
from crowdveil.standalone.device import read_ledger
from tests.campaign.builders import LABELS, build_campaign, response
from tests.campaign.service.accessibility import await_screen, check_screen, ledger_change, set_limit
from tests.campaign.service.browser import Campaigning, address_of, campaigning, chromium, needs_chromium

pytestmark = [needs_chromium, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for all tests of this file; each test opens contexts of its own."""
    with chromium("--host-resolver-rules=MAP lan.test 127.0.0.1") as running:
        yield running


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Campaigning]:
    """A service with an open campaign of three workers and four tasks."""
    with campaigning(tmp_path) as running:
        yield running


def sentence(page: Any) -> str:
    """Wait for a refusal and return its sentence."""
    await_screen(page, "refused")
    return str(page.inner_text("#refused-sentence"))


def begin(page: Any, link: str) -> None:
    """Open a link and press Start."""
    page.goto(link)
    await_screen(page, "intro")
    page.click("#start")
    await_screen(page, "tasks")


def choose(page: Any, task: int, label: str) -> None:
    """Choose a label of a task, and wait until it is stored."""
    page.locator("fieldset").nth(task).get_by_text(label, exact=True).click()
    page.wait_for_function("n => document.querySelector('.bar p').textContent.startsWith(String(n))", arg=task + 1)


def send(page: Any) -> None:
    """Go from the tasks through the review to sending."""
    page.click("#task-form button")
    await_screen(page, "review")
    page.click("#send")


def answer_all(page: Any, link: str) -> None:
    """Open a link, answer every task and send."""
    begin(page, link)
    answer_and_send(page)


def answer_and_send(page: Any) -> None:
    """Answer every task and send."""
    for task in range(4):
        choose(page, task, LABELS.names[task % 3])
    send(page)


def spellings(text: str) -> list[bytes]:
    """Return a text in plain, hexadecimal and base64 form, the latter at each of three offsets."""
    plain = text.encode()
    shifted = []
    for shift in range(3):
        encoded = base64.b64encode(b" " * shift + plain)
        shifted.append(encoded[-(-shift * 8 // 6) : (shift + len(plain)) * 8 // 6])
    return [plain, plain.hex().encode(), *shifted]


def record_of(page: Any) -> dict[str, Any]:
    """Return this browser's record of the campaign."""
    return dict(
        page.evaluate(
            """async () => {
              const wait = (r) => new Promise((done) => (r.onsuccess = () => done(r.result)));
              const database = await wait(indexedDB.open("crowdveil"));
              const [record] = await wait(database.transaction("records").objectStore("records").getAll());
              database.close();
              return { ...record, body: record.body && Array.from(record.body), campaign: undefined, part: undefined };
            }"""
        )
    )


def test_answers_by_clicking_become_one_report(browser: Any, service: Campaigning, caplog: Any) -> None:
    """A worker clicks through; uploads, addresses, database and logs hold no label; the token is in a header only."""
    caplog.set_level(logging.DEBUG)
    page, sent = browser.new_page(), []
    page.on("request", lambda request: sent.append(request))
    answer_all(page, service.link(0))
    await_screen(page, "done")

    bodies = service.bodies()
    uploads = [(request.method, request.url, request.post_data_buffer or b"") for request in sent]
    puts = [upload for upload in uploads if upload[0] != "GET"]
    assert [("PUT", bodies[0])] == [(method, body) for method, _, body in puts]
    assert 4 == len(decode_body(bodies[0], service.built.campaign, 0, range(4)))
    wire = repr([(url, request.headers) for (_, url, _), request in zip(uploads, sent, strict=True)]).encode()
    places = {
        "uploads": b"".join(body for _, _, body in uploads),
        "wire": wire,
        "database": service.stored_bytes(),
        "logs": caplog.text.encode(),
    }
    for label in LABELS.names:
        assert label.encode() in service.built.campaign.to_bytes()
        for spelling in spellings(label):
            assert [] == [place for place, content in places.items() if spelling in content]
    token = service.built.tokens[0].text
    assert [] == [url for _, url, _ in uploads if token in url or "#" in url]
    assert {f"Bearer {token}"} == {r.headers["authorization"] for r in sent if "authorization" in r.headers}
    assert token not in caplog.text
    assert token not in address_of(page)
    assert {"state": "receipted", "title": "Animals"} == {k: v for k, v in record_of(page).items() if v is not None}


def test_the_page_asks_once_and_says_done(browser: Any, service: Campaigning) -> None:
    """After the receipt, reload and link end in "Done on this device"; another device is told that the link is used."""
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    answer_all(page, service.link(0))
    await_screen(page, "done")
    page.reload()
    await_screen(page, "done")
    other = browser.new_context(locale="en-US").new_page()
    other.goto(service.link(0))
    await_screen(other, "intro")
    other.click("#start")

    assert "has been used" in sentence(other)
    assert 1 == len(service.bodies())


def test_reload_and_offline_in_the_middle(browser: Any, service: Campaigning) -> None:
    """Answers survive a reload; a lost connection is waited for; a lost reply leads to the same bytes again."""
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    begin(page, service.link(1))
    choose(page, 0, "quokka")
    page.reload()
    await_screen(page, "tasks")
    assert page.locator("fieldset").nth(0).get_by_label("quokka").is_checked()

    context.set_offline(True)
    choose(page, 1, "narwhal")
    send(page)
    page.wait_for_selector("#status p:not([hidden])")
    assert "tries again by itself" in page.inner_text("#status")
    bodies = []

    def lose_reply(route: Any) -> None:
        bodies.append(route.request.post_data_buffer)
        route.fetch()
        route.abort()

    page.route("**/reports/*", lose_reply, times=1)
    page.on("request", lambda request: request.method == "PUT" and bodies.append(request.post_data_buffer))
    context.set_offline(False)
    await_screen(page, "done")

    assert service.bodies() == [bodies[0]]
    assert {bodies[0]} == set(bodies)
    assert len(bodies) >= 3


def test_every_connection_may_drop_once(browser: Any, service: Campaigning) -> None:
    """Campaign, assignment, state of the link and report are asked for again, also where the receipt is cut."""
    page, dropped = browser.new_context(locale="en-US").new_page(), []
    page.add_init_script(
        "const read = Response.prototype.arrayBuffer; let cuts = 1;"
        "Response.prototype.arrayBuffer = function () {"
        "  const isCut = this.url.includes('/reports/') && cuts-- > 0;"
        "  return isCut ? Promise.reject(new TypeError('network error')) : read.call(this); };"
    )

    def drop(route: Any) -> None:
        dropped.append(route.request.url.rpartition("/v1/campaigns/")[2].split("/")[1:2])
        route.abort()

    for pattern in (service.built.campaign.name, "parts/0", "link", "reports/*"):
        page.route(f"**/{pattern}", drop, times=1)
    answer_all(page, service.link(0))
    await_screen(page, "done")

    assert [[], ["parts"], ["link"], ["reports"]] == dropped
    assert 1 == len(service.bodies())


def test_closed_between_draw_and_receipt_the_page_sends_the_same_bytes_later(
    browser: Any, service: Campaigning
) -> None:
    """The page is closed while the service is down; the next visit without the link sends the stored bytes."""
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    begin(page, service.link(0))
    page.route("**/reports/*", lambda route: route.fulfill(status=503))
    send(page)
    await_screen(page, "sending")
    page.wait_for_selector("#status p:not([hidden])")
    stored = record_of(page)
    page.close()
    again = context.new_page()
    again.goto(service.url + "/a/")
    await_screen(again, "welcome")
    again.click("#open-list button")
    await_screen(again, "done")

    assert "sampled" == stored["state"]
    assert "answers" not in stored
    assert [bytes(stored["body"])] == service.bodies()


def test_a_refused_report_is_not_said_to_be_unsent(browser: Any, service: Campaigning) -> None:
    """A service that refuses the report has its bytes: the page does not say that nothing was sent."""
    page = browser.new_context(locale="en-US").new_page()
    begin(page, service.link(0))
    problem = {"status": 410, "content_type": "application/problem+json", "body": '{"type": "/problems/closed"}'}
    page.route("**/reports/*", lambda route: route.fulfill(**problem))
    send(page)
    said = sentence(page)

    assert "not confirmed" in said
    assert "Nothing was sent" not in said


def test_two_tabs(browser: Any, service: Campaigning) -> None:
    """The second tab of one link stops with a sentence; after the first one closes it can go on."""
    context = browser.new_context(locale="en-US")
    first, second = context.new_page(), context.new_page()
    begin(first, service.link(0))
    second.goto(service.link(0))
    refused = sentence(second)
    first.close()
    second.wait_for_function("async () => (await navigator.locks.query()).held.length === 0")
    second.reload()

    assert "another tab" in refused
    await_screen(second, "tasks")


@pytest.mark.parametrize(
    ("opens", "closes", "expected"),
    [(date(2020, 1, 1), date(2020, 1, 2), "closed"), (date(2098, 1, 1), date(2098, 1, 2), "not begun")],
)
def test_outside_the_days(browser: Any, tmp_path: Path, opens: date, closes: date, expected: str) -> None:
    """Before the first day and after the last one the page says so before the consent, and names the days."""
    with campaigning(tmp_path, opens=opens, closes=closes) as service:
        page = browser.new_context(locale="en-US").new_page()
        page.goto(service.link(0))

        assert expected in sentence(page)
        assert f"from 1 January {opens.year} to 2 January {opens.year}" in page.inner_text("#refused")


def test_closed_while_answering(browser: Any, service: Campaigning) -> None:
    """A campaign that closes in between draws nothing."""
    page = browser.new_context(locale="en-US").new_page()
    begin(page, service.link(0))
    service.store.close_and_count_reports(service.built.campaign.digest)
    send(page)

    assert "closed" in sentence(page)
    assert record_of(page).get("body") is None


def test_links_that_are_not_known(browser: Any, service: Campaigning) -> None:
    """A wrong token, another campaign, and half a link each end in a sentence of their own."""
    stranger = build_campaign(url=service.url)
    wrong = service.link(0)[:-27] + stranger.tokens[0].text
    page = browser.new_context(locale="en-US").new_page()
    page.goto(wrong)
    await_screen(page, "intro")
    page.click("#start")
    assert "does not know this link" in sentence(page)

    page = browser.new_context(locale="en-US").new_page()
    page.goto(stranger.link(0).text)
    assert "does not know this campaign" in sentence(page)

    page = browser.new_context(locale="en-US").new_page()
    page.goto(service.link(0)[:-3])
    await_screen(page, "welcome")
    assert "its end is missing" in page.inner_text("#link-error")
    page.fill("#link", "my link")
    page.click("#link-form button")
    assert "no link in this text" in page.inner_text("#link-error")
    page.fill("#link", service.link(1)[:-3])
    page.click("#link-form button")
    assert "its end is missing" in page.inner_text("#link-error")
    page.fill("#link", service.link(1))
    page.click("#link-form button")
    await_screen(page, "intro")


@pytest.mark.parametrize("defect", ["zero entry", "ratio", "another document"])
def test_a_forged_campaign(browser: Any, service: Campaigning, defect: str) -> None:
    """A channel that does not keep its promise is refused though the link names it, and so is another document."""
    fields = json.loads(service.built.campaign.to_bytes())
    certificate = fields["certificates"][0]
    if defect == "another document":
        fields["question"] = "Which person is it?"
    elif defect == "zero entry":
        row = certificate["rows"][0]
        row[0], row[1] = row[0] + row[1], 0
    else:
        certificate["ratio"] = [2, 1]
    certificate["sha256"] = digest(certificate)
    forged = canonical_bytes(fields)
    other = defect == "another document"
    name = service.built.campaign.name if other else base64url_of_digest(sha256(forged).digest())
    service.forger.replies[name] = (200, {}, forged)
    page = browser.new_context(locale="en-US").new_page()
    page.goto(f"{service.url}/a/#1.{name}.{service.built.tokens[0].text}")

    wrong = "not the campaign that your link names" if other else "certificate of this campaign is wrong"
    assert wrong in sentence(page)
    assert other or defect in page.inner_text("#refused")
    assert 0 == page.locator("fieldset").count()


def test_scripts_from_elsewhere_do_not_run(browser: Any, service: Campaigning) -> None:
    """Inline scripts, handlers, injected and foreign scripts in the page are stopped by its policy."""
    static = Path(__file__).parents[3] / "src" / "crowdveil" / "campaign" / "service" / "static"
    html = (static / "index.html").read_bytes()
    with campaigning(service.database.parent / "other") as elsewhere:
        inline = b"<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
        foreign = f"<script src='{elsewhere.url}/static/device.mjs?hacked'></script>".encode()
        policy = {}
        page = browser.new_page()
        page.on("response", lambda r: policy.update({"csp": r.headers.get("content-security-policy", "")}))
        page.goto(service.url + "/a/")
        service.forger.replies["/a/"] = (
            200,
            {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy["csp"]},
            html.replace(b"</main>", inline + foreign + b"</main>"),
        )
        asked: list[str] = []
        page = browser.new_page()
        page.on("response", lambda r: asked.append(r.url))
        page.goto(service.link(0))
        await_screen(page, "intro")
        tried = page.evaluate(
            """() => {
              const script = document.createElement("script");
              try { script.text = "window.hacked = 3"; } catch (error) { return error.name; }
              document.body.append(script);
              return "";
            }"""
        )

        assert page.evaluate("window.hacked") is None
        assert "TypeError" == tried
        assert [] == [url for url in asked if url.startswith(elsewhere.url)]


@pytest.mark.parametrize(
    ("host", "said"), [("lan.test", "begins with https"), ("localhost", "belongs to another address")]
)
def test_another_address_is_refused(browser: Any, service: Campaigning, host: str, said: str) -> None:
    """On an unprotected connection, or at another address than the campaign's, the page says so and asks nothing."""
    page = browser.new_context(locale="en-US").new_page()
    page.goto(service.link(0).replace("127.0.0.1", host))

    assert said in sentence(page)
    assert (host == "lan.test") == (service.link(0).partition("#")[2] in address_of(page))


def test_a_receipt_for_other_bytes_is_refused(browser: Any, service: Campaigning) -> None:
    """A receipt whose hash is not that of the sent bytes ends in a sentence; the report stays as it is."""
    page = browser.new_context(locale="en-US").new_page()
    page.route(
        "**/reports/*",
        lambda route: route.fulfill(
            body=canonical_bytes(
                {
                    "campaign": service.built.campaign.name,
                    "format": "crowdveil-receipt/1",
                    "mac": "0" * 64,
                    "report": route.request.url.rpartition("/")[2],
                    "stored_sha256": "0" * 64,
                }
            )
        ),
    )
    begin(page, service.link(0))
    send(page)

    assert "did not confirm" in sentence(page)
    assert "As long as the browser keeps its data, this page draws no second report" in page.inner_text("#refused")


def test_keyboard_only(browser: Any, service: Campaigning) -> None:
    """A worker without a pointer answers and sends with Tab, arrows, space and Enter."""
    page = browser.new_context(locale="en-US").new_page()
    page.goto(service.link(0))
    await_screen(page, "intro")
    press_until(page, "start")
    page.keyboard.press("Enter")
    await_screen(page, "tasks")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.querySelector('.bar p').textContent.startsWith('1')")
    for _ in range(4):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    await_screen(page, "review")
    press_until(page, "send")
    page.keyboard.press("Space")
    await_screen(page, "done")

    assert 1 == len(service.bodies())


def press_until(page: Any, name: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(40):
        if page.evaluate("document.activeElement.id") == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"#{name} cannot be reached with Tab")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "de"])
def test_every_screen_is_accessible(browser: Any, service: Campaigning, scheme: str, language: str) -> None:
    """At 360 px every screen has contrast 4.5:1, targets of 44 px, names for all controls, and fits the width."""
    context = browser.new_context(viewport={"width": 360, "height": 700}, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()

    page.goto(service.url + "/a/")
    await_screen(page, "welcome")
    page.click(f"[data-language={language}]")
    page.reload()
    check_screen(page, "welcome", language)
    page.goto(service.link(0))
    await_screen(page, "intro")
    page.click("#ledger summary")
    page.click("#intro summary")
    page.focus("#intro-heading")
    check_screen(page, "intro", language)
    page.click("#start")
    check_screen(page, "tasks", language)
    choose(page, 0, "quokka")
    set_limit(page, "1")
    page.click("#task-form button")
    check_screen(page, "review", language)
    assert page.locator("#review .warning").is_visible()
    assert 0 == page.locator("#review li[data-text='review.ledger']:visible").count(), "nothing was promised before"
    page.click("#send")
    check_screen(page, "done", language)
    page.goto("about:blank")
    page.goto(service.link(1)[:-27] + build_campaign(url=service.url).tokens[1].text)
    await_screen(page, "intro")
    page.click("#start")
    check_screen(page, "refused", language)


def test_the_ledger_adds_up_and_moves(browser: Any, tmp_path: Path) -> None:
    """The page states epsilon in all; a saved ledger is read by Python and by another browser; no line is replaced."""
    context = browser.new_context(locale="en-US", accept_downloads=True)
    page = context.new_page()
    with campaigning(tmp_path / "one") as service:
        begin(page, service.link(0))
        send(page)
        await_screen(page, "done")
        assert page.inner_text("#ledger summary").endswith("4")
        page.click("#ledger summary")
        with page.expect_download() as saved:
            page.click("#export")
        ledger = Path(saved.value.path()).read_bytes()
        lines = json.loads(ledger)["lines"]
        (tmp_path / "ledger.json").write_bytes(ledger)
        assert "4.000" == shown(epsilon(read_ledger(tmp_path)))
        other = browser.new_context(locale="en-US").new_page()
        other.goto(service.url + "/a/")
        await_screen(other, "welcome")
        for _ in range(2):
            with ledger_change(other):
                other.set_input_files("#import", {"name": "l.json", "mimeType": "application/json", "buffer": ledger})
            other.wait_for_function("() => document.querySelector('#ledger summary').textContent.endsWith('4')")
        smaller = [{**lines[0], "cells": 1}, {**lines[0], "cells": 1, "report": "f" * 32}]
        forged = canonical_bytes({"format": "crowdveil-ledger/1", "lines": smaller})
        other.set_input_files("#import", {"name": "l.json", "mimeType": "application/json", "buffer": forged})
        other.wait_for_function("() => document.querySelector('#ledger summary').textContent.endsWith('5')")
        other.set_input_files("#import", {"name": "l.json", "mimeType": "application/json", "buffer": b"[]"})

        assert [4] == [line["cells"] for line in lines]
        assert list(response().ratio.as_integer_ratio()) == [lines[0][part] for part in ("numerator", "denominator")]
        assert "not a ledger" in sentence(other)


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.mark.parametrize("changed", [False, True])
def test_pictures_are_shown_if_they_are_the_campaigns(browser: Any, tmp_path: Path, changed: bool) -> None:
    """A picture appears with its text for screen readers; one with another hash stops the page."""
    picture = Picture(sha256(PIXEL).hexdigest(), "image/png", len(PIXEL), "one grey point")
    shown_file = tmp_path / "campaign" / "pictures" / picture.sha256
    shown_file.parent.mkdir(parents=True)
    shown_file.write_bytes(PIXEL)
    with campaigning(tmp_path, content={"tasks": (Task("a", "What is this?", picture),)}, tasks=1) as service:
        if changed:
            service.forger.replies[picture.sha256] = (200, {"Content-Type": "image/png"}, PIXEL + b"x")
        page = browser.new_context(locale="en-US").new_page()
        page.goto(service.link(0))
        await_screen(page, "intro")
        page.click("#start")
        if changed:
            assert "not the campaign that your link names" in sentence(page)
            return
        image = page.get_by_alt_text("one grey point")
        page.wait_for_function("() => document.querySelector('fieldset img')?.naturalWidth === 1")

        assert image.get_attribute("src").startswith("blob:")


def test_many_labels_are_a_menu_and_public_participation_is_said(browser: Any, tmp_path: Path) -> None:
    """Twenty grades become a menu; with public participation the page says so, and unanswered tasks are marked."""
    channel = response(Scale(0, 19), 2.0, "public")
    with campaigning(tmp_path, channels=[channel]) as service:
        page = browser.new_context(locale="en-US").new_page()
        page.goto(service.link(0))
        await_screen(page, "intro")
        assert "Which tasks you answer is visible" in page.inner_text("#intro")
        page.click("#start")
        page.get_by_role("combobox").nth(2).select_option("17")
        page.wait_for_function("() => document.querySelector('.bar p').textContent.startsWith('1')")
        page.reload()
        await_screen(page, "tasks")
        assert "17" == page.get_by_role("combobox").nth(2).input_value()
        send(page)
        await_screen(page, "done")
        codes = decode_body(service.bodies()[0], service.built.campaign, 0, range(4))

    assert [NOT_ANSWERED, NOT_ANSWERED, NOT_ANSWERED] == [codes[0], codes[1], codes[3]]
    assert 0 <= codes[2] < 20

"""Devices without the service's page: the one-file page, and the Python devices against the service."""

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.device import answer_campaign
from crowdveil.campaign.files.campaign_reports import EXPORT_FILES
from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.files.report_files import read_report_files, write_collections
from crowdveil.campaign.rules.report import decode_body
from crowdveil.campaign.service import one_file_page as module
from crowdveil.campaign.service.app import create_app
from crowdveil.campaign.service.campaign_registration import register_campaign
from crowdveil.campaign.service.export_and_purge import export_closed_campaign
from crowdveil.campaign.service.one_file_page import one_file_page
from crowdveil.campaign.service.store import Store
from crowdveil.errors import DeviceError, SettingsError
from crowdveil.standalone import device as one_file
from tests.campaign.builders import LABELS, BuiltCampaign, build_campaign
from tests.campaign.service.accessibility import await_screen, check_screen
from tests.campaign.service.browser import chromium, free_port, needs_chromium, served
from tests.campaign.service.test_device_vectors import STATIC


@pytest.fixture
def page(tmp_path: Path) -> tuple[Any, Path, str]:
    """The page of a campaign without a service, with the link of worker 1 after the name of the file."""
    built = build_campaign(url=None)
    file = tmp_path / "device.html"
    file.write_bytes(one_file_page(CampaignFolder(built.write(tmp_path / "campaign"))))
    return built, file, f"{file.as_uri()}{built.link(1).text}"


@pytest.mark.slow
@needs_chromium
def test_the_report_is_a_file_and_a_text(page: Any) -> None:
    """Nothing is requested; file and text are the canonical report of the link, drawn once and kept until handed in."""
    built, _, link = page
    with chromium() as browser:
        small = {"width": 360, "height": 700}
        context = browser.new_context(locale="en-US", viewport=small, reduced_motion="reduce")
        tab, requested = context.new_page(), []
        tab.on("request", lambda request: requested.append(request.url))
        tab.goto(link)
        await_screen(tab, "intro")
        assert "cannot connect to anything" in tab.text_content("#intro")
        tab.click("#start")
        tab.locator("fieldset").nth(0).get_by_text(LABELS.names[1], exact=True).click()
        tab.wait_for_function("() => document.querySelector('.bar p').textContent.startsWith('1')")
        tab.click("#task-form button")
        tab.click("#send")
        saved = [save(tab)]
        tab.reload()
        saved.append(save(tab))
        tab.focus("#report-heading")
        check_screen(tab, "report", "en")
        tab.focus("#report-text")
        copied = tab.evaluate("() => getSelection().toString() || document.activeElement.value")
        with pytest.raises(Exception, match=r"Failed to fetch|violates"):
            tab.evaluate("() => fetch('https://example.org/')")
        tab.click("#handed-in")
        await_screen(tab, "done")

    report = json.loads(saved[0])
    assert saved[0] == saved[1] == copied.encode()
    assert saved[0] == json.dumps(report, sort_keys=True, separators=(",", ":")).encode()
    assert {"campaign", "format", "report", "symbols", "token"} == set(report)
    assert (built.campaign.name, built.tokens[1].text) == (report["campaign"], report["token"])
    assert 4 == len(decode_body(bytes.fromhex(report["symbols"]), built.campaign, 1, range(4)))
    assert [link.partition("#")[0]] == [url.partition("#")[0] for url in requested if not url.startswith("blob:")][:1]
    assert [] == [url for url in requested if not url.startswith(("file:", "blob:"))]


def save(tab: Any) -> bytes:
    """Return the report that the page offers as a file."""
    await_screen(tab, "report")
    with tab.expect_download() as download:
        tab.click("#report-link")
    return Path(download.value.path()).read_bytes()


@pytest.mark.slow
@needs_chromium
def test_a_changed_file_does_not_run(page: Any) -> None:
    """One changed byte of the script: the policy in the file stops it. A changed campaign: the page refuses it."""
    _, file, link = page
    html = file.read_bytes()
    with chromium() as browser:
        assert 1 == html.count(b"= 2 ** 48;")
        file.write_bytes(html.replace(b"= 2 ** 48;", b"= 2 ** 49;"))
        tab = browser.new_page()
        with tab.expect_console_message(lambda message: "Content Security Policy" in message.text):
            tab.goto(link)
        shown = tab.locator("main > section:not([hidden])").count()
        embedded = re.search(rb'id="embedded">(.*?)</script>', html)
        assert embedded is not None
        data = json.loads(embedded[1])
        data["files"] = dict.fromkeys(data["files"], "e30=")
        file.write_bytes(html.replace(embedded[1], json.dumps(data).replace("<", "\\u003c").encode()))
        other = browser.new_context(locale="en-US").new_page()
        other.goto(link)
        await_screen(other, "refused")
        sentence = other.inner_text("#refused-sentence")

    assert 0 == shown
    assert "not the campaign that your link names" in sentence


def test_the_page_holds_the_published_scripts(page: Any) -> None:
    """The inline script is device.mjs and hpke.mjs byte for byte, then page.mjs; the policy allows no connection."""
    _, file, _ = page
    html = file.read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)

    assert (STATIC / "device.mjs").read_text("utf-8") + (STATIC / "hpke.mjs").read_text("utf-8") in html
    assert 1 == html.count('<script type="module">')
    assert 0 == html.count("src=")
    assert policy is not None
    assert "connect-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert "</script" not in (STATIC / "device.mjs").read_text("utf-8") + (STATIC / "page.mjs").read_text("utf-8")


def test_the_page_is_reproducible_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same campaign gives the same SHA-256; a page beyond the bound is refused."""
    folder = CampaignFolder(build_campaign(url=None).write(tmp_path))
    first, second = (sha256(one_file_page(folder)).hexdigest() for _ in range(2))
    monkeypatch.setattr(module, "MAX_BYTES", 1_000)

    assert first == second
    with pytest.raises(SettingsError, match="at most 1,000 bytes"):
        one_file_page(folder)


def copied_reports(built: BuiltCampaign, homes: Path, target: Path) -> None:
    """Write each device's stored report as a file; it ends with the device's receipt."""
    for slot in (0, 1):
        with one_file.Device(built.link(slot).text, homes / str(slot)) as device:
            device.open()
            device.answer(0, "quokka")
            device.sample()
            device.save_report(target)
            device.send()


def test_service_and_files_give_the_same_folder(tmp_path):
    """Reports that two devices send and hand in as files are exported and collected to the same bytes."""
    built = build_campaign(url=f"http://127.0.0.1:{(port := free_port())}")
    folder = CampaignFolder(built.write(tmp_path / "campaign"))
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register_campaign(store, folder)
    digest = built.campaign.digest
    (tmp_path / "my.csv").write_text("task,label\nt0,narwhal\n")
    with served(create_app(store), port):
        copied_reports(built, tmp_path / "homes", tmp_path / "files")
        shutil.rmtree(tmp_path / "homes" / "0")  # another device of the same worker
        with pytest.raises(DeviceError, match="has been used"):
            answer_campaign(built.link(0).text, answers=tmp_path / "my.csv", home=tmp_path / "homes" / "0")
        store.close_and_count_reports(digest)
        with pytest.raises(DeviceError, match="is closed"):
            answer_campaign(built.link(2).text, answers=tmp_path / "my.csv", home=tmp_path / "homes" / "2")
    export_closed_campaign(store, digest, tmp_path / "exported")
    store.close()
    write_collections(tmp_path / "collected", folder.campaign, read_report_files(tmp_path / "files", folder))

    for name in EXPORT_FILES:
        assert (tmp_path / "exported" / name).read_bytes() == (tmp_path / "collected" / name).read_bytes()

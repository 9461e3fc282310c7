"""The worker's page with a relay, in Chromium: the report is encrypted in the page, and the curator's key opens it."""

from hashlib import sha256
from pathlib import Path

import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.relay.sealing import decrypt_part, new_key
from crowdveil.campaign.rules.canonical_json import canonical_bytes
from crowdveil.campaign.rules.document import base64url_of_digest
from crowdveil.campaign.rules.report import decode_body, sealed_parts
from crowdveil.campaign.service.app import create_app
from crowdveil.campaign.service.campaign_registration import register_campaign
from crowdveil.campaign.service.one_file_page import one_file_page
from crowdveil.campaign.service.store import Store
from crowdveil.errors import SettingsError
from tests.campaign.builders import build_campaign, relay_of_key
from tests.campaign.files.test_folder import DAMAGED, fields
from tests.campaign.service.accessibility import await_screen
from tests.campaign.service.browser import Campaigning, Forger, chromium, free_port, needs_chromium, served
from tests.campaign.service.test_device_vectors import needs_node, run_node
from tests.campaign.service.test_page import answer_and_send

READ = """
const outcomes = [];
for (const { name, text } of data) {
  const outcome = device.readCampaign(new TextEncoder().encode(text), name).then(() => "read", ({ defect }) => defect);
  outcomes.push(await outcome);
}
console.log(JSON.stringify(outcomes));
"""


@needs_node
def test_the_page_refuses_what_python_refuses() -> None:
    """The page's module reads a campaign with a relay, and refuses each damaged one of the library's tests."""
    documents = [
        canonical_bytes(data) for data in (fields(), *({**fields(), **changed} for changed in DAMAGED.values()))
    ]
    texts = [{"name": base64url_of_digest(sha256(data).digest()), "text": data.decode()} for data in documents]

    assert ["read", *["relay"] * len(DAMAGED)] == run_node(READ, texts)


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("unit", ["report", "cell"])
def test_the_page_seals_its_report(tmp_path: Path, unit: str) -> None:
    """The page names the relay; what it sends has the one length, and opens to symbols of the channel."""
    key, port = new_key(), free_port()
    built = build_campaign(url=f"http://127.0.0.1:{port}", content={"relay": relay_of_key(key, unit)})
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register_campaign(store, CampaignFolder(built.write(tmp_path / "relay")), relay=True)
    forger = Forger(create_app(store))
    running = Campaigning(built, store, tmp_path / "reports.sqlite", forger)
    with served(forger, port), chromium() as browser:
        page = browser.new_page()
        page.goto(running.link(0))
        await_screen(page, "intro")
        page.click("#more summary")
        assert "The relay cannot read it" in page.inner_text("#intro")
        assert ["The library"] == page.locator("#intro bdi.foreign").all_inner_texts()
        page.click("#start")
        await_screen(page, "tasks")
        answer_and_send(page)
        await_screen(page, "done")
    (sealed,) = running.bodies()
    body = b"".join(decrypt_part(key, info, part) for info, part in sealed_parts(built.campaign, sealed))
    store.close()

    assert built.campaign.sent_bytes == len(sealed)
    assert 4 == len(decode_body(body, built.campaign, 0, built.tasks(0)))


def test_a_relay_has_no_one_file_page(tmp_path: Path) -> None:
    """A page without network could not reach the relay: it is refused with the ways that remain."""
    folder = CampaignFolder(build_campaign(content={"relay": relay_of_key(new_key())}).write(tmp_path))

    with pytest.raises(SettingsError, match="page of their links"):
        one_file_page(folder)

"""The curator's side, the relay's database and its refusals, in one process."""

import socket
from contextlib import suppress
from datetime import date
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import func, select
from starlette.testclient import TestClient

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.relay import forwarder
from crowdveil.campaign.relay.forwarder import batch_sender_over_http, form_batches, send_batches
from crowdveil.campaign.relay.receiver import (
    create_receiver_app,
    prepare_relay,
    store_batch_file,
    url_sender,
)
from crowdveil.campaign.rules.document import Relay
from crowdveil.campaign.rules.report import make_batches
from crowdveil.campaign.service.campaign_registration import register_campaign
from crowdveil.campaign.service.export_and_purge import export_closed_campaign, purge_due_campaigns
from crowdveil.campaign.service.problems import BATCH_MEDIA_TYPE
from crowdveil.campaign.service.schema import batches
from crowdveil.campaign.service.store import Store
from crowdveil.errors import DeviceError, SettingsError
from tests.campaign.builders import PUBLIC_KEY, BuiltCampaign, build_campaign

TOKEN = "t" * 43
RELAY = Relay("The library", PUBLIC_KEY, 2, "report")


@pytest.fixture
def built() -> BuiltCampaign:
    """A campaign with a relay."""
    return build_campaign(content={"relay": RELAY})


def test_a_batch_is_stored_once_and_only_for_the_relay(built: BuiltCampaign, tmp_path: Path) -> None:
    """Token, media type, name and form are checked; the same batch again is confirmed and stored once."""
    campaign = built.campaign
    (batch,) = make_batches(campaign, [bytes(campaign.sent_bytes)] * 2)
    name = sha256(batch).hexdigest()
    client = TestClient(create_receiver_app(campaign, tmp_path, TOKEN))
    address, right = f"/v1/campaigns/{campaign.name}/batches/{name}", {"Authorization": f"Bearer {TOKEN}"}
    right["Content-Type"] = BATCH_MEDIA_TYPE
    other = "0" * 64

    def status(path: str = address, content: bytes = batch, **changed: str) -> int:
        return client.put(path, content=content, headers={**right, **changed}).status_code

    assert 401 == status(Authorization=f"Bearer {'u' * 43}")
    other_type: dict[str, Any] = {"Content-Type": "text/plain"}
    assert 415 == status(**other_type)
    assert 400 == status(address.replace(name, other))
    assert 404 == status(address.replace(campaign.name, "A" * 43))
    single = batch.replace(b'"reports":2', b'"reports":1')[: -campaign.sent_bytes]
    assert 400 == status(address.replace(name, sha256(single).hexdigest()), single)
    assert [] == list(tmp_path.iterdir())
    assert [200, 200] == [status(), status()]
    assert [f"{name}.batch"] == [path.name for path in tmp_path.iterdir()]


def test_batches_are_formed_once_and_deleted_with_the_campaign(built: BuiltCampaign, tmp_path: Path) -> None:
    """An open campaign has no batch; a closed one has the same batch for ever, until it is purged."""
    campaign, digest = built.campaign, built.campaign.digest
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register_campaign(store, CampaignFolder(built.write(tmp_path / "relay")), relay=True)
    for slot, token in enumerate(built.tokens):
        store.store_report(digest, token, f"{slot:032x}", bytes([slot]) * campaign.sent_bytes)
    sent: list[str] = []

    assert 0 == form_batches(store, digest)
    store.close_and_count_reports(digest)
    assert [1, 1] == [form_batches(store, digest), form_batches(store, digest)]
    with pytest.raises(OSError, match="away"):
        send_batches(store, digest, lambda *_: (_ for _ in ()).throw(OSError("away")))
    assert [1, 0] == [send_batches(store, digest, lambda name, _: sent.append(name)) for _ in range(2)]
    assert 1 == len(sent)
    with pytest.raises(SettingsError, match="sealed"):
        export_closed_campaign(store, digest, tmp_path / "out")
    store.purge(digest)
    with store.engine.connect() as connection:
        assert 0 == connection.execute(select(func.count()).select_from(batches)).scalar_one()
    store.close()


@pytest.mark.parametrize(
    ("forms", "delivers", "said"),
    [
        (True, False, ["3 reports were deleted before they were forwarded; batches not delivered: 1."]),
        (False, False, ["3 reports were deleted before they were forwarded; batches not delivered: 0."]),
        (True, True, []),
    ],
)
def test_deletion_names_what_was_not_delivered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, forms: bool, delivers: bool, said: list[str]
) -> None:
    """On the day of deletion the log has the numbers of reports and batches that the curator never got, or no line."""
    built = build_campaign(closes=date(2100, 1, 1), content={"relay": RELAY, "purge_after_days": 1})
    digest, today = built.campaign.digest, [date(2100, 1, 1)]
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}", today=lambda: today[0])
    register_campaign(store, CampaignFolder(built.write(tmp_path / "relay")), relay=True)
    for slot, token in enumerate(built.tokens):
        store.store_report(digest, token, f"{slot:032x}", bytes([slot]) * built.campaign.sent_bytes)
    store.close_and_count_reports(digest)
    if forms:
        form_batches(store, digest)
    if delivers:
        send_batches(store, digest, lambda *_: None)
    today[0] = date(2100, 1, 2)

    assert 1 == purge_due_campaigns(store)

    assert [f"day of deletion: {text}" for text in said] == caplog.messages
    store.close()


def test_a_slow_confirmation_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A curator's side that answers byte by byte does not hold the relay, which deletes on the promised day."""
    monkeypatch.setattr(forwarder, "SEND_SECONDS", 1.5)
    ends, sent = Event(), []

    def drip(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            while not ends.wait(0.05):
                connection.sendall(b"x")
                sent.append(1)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        dripping = Thread(target=drip, args=(listening,))
        dripping.start()
        with pytest.raises(OSError, match=r"another confirmation|reset by peer|Broken pipe"):  # as the connection ends
            batch_sender_over_http(f"http://127.0.0.1:{listening.getsockname()[1]}", "c", TOKEN)("0" * 64, b"batch")
        ends.set()
        dripping.join()
    assert 0 < len(sent) < 1_000


def test_service_and_relay_refuse_each_others_campaigns(built: BuiltCampaign, tmp_path: Path) -> None:
    """A campaign with a relay is not served by the curator, another one is not relayed, and a key is not held."""
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    with pytest.raises(SettingsError, match="crowdveil campaign relay"):
        register_campaign(store, CampaignFolder(built.write(tmp_path / "relay")))
    store.close()
    build_campaign().write(tmp_path / "other")
    with pytest.raises(SettingsError, match="served by crowdveil campaign relay"):
        prepare_relay(f"sqlite:///{tmp_path / 'a.sqlite'}", tmp_path / "other" / "campaign.json")
    (tmp_path / "relay" / "essays.key.pem").write_text("secret")
    with pytest.raises(SettingsError, match="private key"):
        prepare_relay(f"sqlite:///{tmp_path / 'b.sqlite'}", tmp_path / "relay" / "campaign.json")


def test_the_token_is_not_sent_in_the_clear(built: BuiltCampaign, tmp_path: Path) -> None:
    """Batches and token go to https, or to this computer."""
    (tmp_path / "token.txt").write_text(TOKEN)

    with pytest.raises(SettingsError, match="must be https"):
        url_sender(built.campaign, "http://curator.example.org", tmp_path / "token.txt")
    assert callable(url_sender(built.campaign, "http://127.0.0.1:1/", tmp_path / "token.txt"))


def test_devices_without_encryption_say_what_to_do(tmp_path: Path) -> None:
    """The one-file device, and the library's device without the extra, send nothing and name the ways that remain."""
    from crowdveil.campaign.device import answer_campaign
    from crowdveil.standalone.checks import Refused
    from crowdveil.standalone.device import Device

    built = build_campaign(content={"relay": RELAY})
    folder, link = built.write(tmp_path / "files"), built.link(0).text
    with Device(link, tmp_path / "home", folder) as device, pytest.raises(Refused, match="which this one file cannot"):
        device.open()
    with pytest.raises(DeviceError, match=r"crowdveil\[relay\]"):
        answer_campaign(link, answers=tmp_path / "my.csv", home=tmp_path / "other", files=folder)


def test_a_damaged_batch_is_written_again_and_no_link_is_followed(built: BuiltCampaign, tmp_path: Path) -> None:
    """An empty file of the batch's name is not confirmed as stored; a link in the folder overwrites nothing."""
    (batch,) = make_batches(built.campaign, [bytes(built.campaign.sent_bytes)] * 2)
    name = sha256(batch).hexdigest()
    folder, other = tmp_path / "batches", tmp_path / "other.txt"
    folder.mkdir()
    other.write_text("kept")
    (folder / f"{name}.batch").touch()
    (folder / f".{name}.new").symlink_to(other)
    path = folder / f"{name}.batch"
    store_batch_file(built.campaign, folder, name, batch)

    assert batch == path.read_bytes()
    assert "kept" == other.read_text()
    assert 0o600 == path.stat().st_mode & 0o777

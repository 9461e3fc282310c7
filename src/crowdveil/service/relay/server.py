"""Processes of the relay and of the curator's side."""

from __future__ import annotations

import socket
from pathlib import Path

from crowdveil.campaign.document import Campaign
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import PRIVATE_FOLDER, folder_errors
from crowdveil.service.app import create_app
from crowdveil.service.campaign_registration import campaign_folder_of, prepare_database, read_or_make_secret
from crowdveil.service.relay.forwarder import Forwarder, Send, http_sender
from crowdveil.service.relay.receiver import create_receiver
from crowdveil.service.server import ServerSettings, serve_app
from crowdveil.service.store import Store
from crowdveil.standalone.checks import URL, fits

TOKEN_FILE = "relay-token.txt"
KEY_PATTERN = "*.key.pem"


def prepare_relay(database: str, campaign_file: Path) -> tuple[Campaign, list[int]]:
    """Prepare the database of a relay; return the campaign and the slots whose new links were left out.

    Raises:
        SettingsError: no relay, a private key in the folder, or as `register`.
        CampaignError, CertificateError: the folder is damaged.
    """
    folder = campaign_folder_of(campaign_file)
    keys = [path.name for path in folder.path.rglob(KEY_PATTERN)]
    if keys:
        raise SettingsError(
            "the relay must not hold the curator's private key", value=keys[0], hint="Leave it with the curator."
        )
    return prepare_database(database, campaign_file, relay=True)


def run_relay(settings: ServerSettings, listening: socket.socket, campaign: Campaign, send: Send) -> None:
    """Take sealed reports and forward them, until SIGTERM or SIGINT."""
    store = Store.open(settings.database)
    forwarder = Forwarder(store, campaign.digest, send)

    def stop() -> None:
        forwarder.close()
        store.close()

    serve_app(create_app(store, on_stop=stop, rate=settings.rate_limit), settings, listening)


def url_sender(campaign: Campaign, url: str, token_file: Path) -> Send:
    """Return a function that sends batches to the curator's side, with the token in a file.

    Raises:
        SettingsError: the file holds no token, or the address is neither https nor on this computer.
    """
    url = url.removesuffix("/")
    if not fits(url, URL):
        raise SettingsError(
            "the curator's address must be https, or on this computer", value=url, hint="It gets the token in a header."
        )
    return http_sender(url, campaign.name, read_or_make_secret(token_file, make=False))


def private_folder(folder: Path) -> Path:
    """Return a folder, made for its owner alone if it is absent."""
    with folder_errors(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
    return folder


def run_receiver(settings: ServerSettings, listening: socket.socket, campaign: Campaign, folder: Path) -> None:
    """Store the batches that the relay sends, until SIGTERM or SIGINT."""
    token = read_or_make_secret(folder / TOKEN_FILE, make=True)
    serve_app(create_receiver(campaign, folder, token, rate=settings.rate_limit), settings, listening)

"""Curator's side of a relay: takes batches over HTTP and stores each as a file before it is confirmed.

A batch is named by its SHA-256, so that sending it again stores nothing twice. Only the relay has the token.
"""

from __future__ import annotations

import os
import socket
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from tempfile import mkstemp

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from crowdveil.campaign.relay.forwarder import Forwarder, Send, batch_sender_over_http, stored_batch_reply
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.rules.report import NAME, SUFFIX, most_batch_bytes, parse_batch
from crowdveil.campaign.service.app import NOT_STORED, content_length, create_app, read_body
from crowdveil.campaign.service.campaign_registration import (
    folder_of_campaign_json,
    read_or_make_token,
    register_campaign_in_database,
)
from crowdveil.campaign.service.problems import BATCH_MEDIA_TYPE, Problem, on_http_error, on_problem
from crowdveil.campaign.service.rate_limit import RateLimit
from crowdveil.campaign.service.security import RequestGuard
from crowdveil.campaign.service.server import ServerSettings, serve_app
from crowdveil.campaign.service.store import Store
from crowdveil.errors import CampaignError, SettingsError
from crowdveil.files.atomic_write import PRIVATE_FOLDER, folder_errors
from crowdveil.standalone.checks import URL, fits


def create_receiver_app(campaign: Campaign, folder: Path, token: str, *, rate: RateLimit | None = None) -> Starlette:
    """Return the application that stores the batches of a campaign in a folder.

    Args:
        campaign: campaign with a relay.
        folder: existing folder; batches are `<SHA-256>.batch`.
        token: secret that the relay presents.
        rate: bound on the requests of each client address; None for none.
    """

    async def put(request: Request) -> Response:
        given, name = request.headers.get("authorization", ""), request.path_params["name"]
        if request.path_params["hash"] != campaign.name or not NAME.fullmatch(name):
            raise Problem("unknown")
        if not compare_digest(given.encode(), f"Bearer {token}".encode()):
            raise Problem("token")
        if request.headers.get("content-type", "").strip().lower() != BATCH_MEDIA_TYPE:
            raise Problem("media-type")
        data = await read_body(request, content_length(request, most_batch_bytes(campaign)))
        await run_in_threadpool(store_batch_file, campaign, folder, name, data)
        return Response(stored_batch_reply(name), headers=NOT_STORED, media_type="application/json")

    app = Starlette(
        routes=[Route("/v1/campaigns/{hash}/batches/{name}", put, methods=["PUT"])],
        middleware=[Middleware(RequestGuard, rate=rate)],
        exception_handlers={Problem: on_problem, HTTPException: on_http_error},
    )
    app.router.redirect_slashes = False
    return app


def store_batch_file(campaign: Campaign, folder: Path, name: str, data: bytes) -> None:
    """Write a batch durably, unless it is stored. A damaged file of its name is written again.

    Raises:
        Problem: `batch`, if the name is not its SHA-256 or it is none of this campaign.
    """
    path = folder / f"{name}{SUFFIX}"
    if sha256(data).hexdigest() != name:
        raise Problem("batch")
    try:
        parse_batch(campaign, data)
    except CampaignError:
        raise Problem("batch") from None
    if not (path.is_file() and path.read_bytes() == data):
        descriptor, temporary = mkstemp(".new", f".{name}.", folder)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.utime(temporary, (0, 0))
        os.replace(temporary, path)
        if os.name == "posix":
            descriptor = os.open(folder, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


TOKEN_FILE = "relay-token.txt"
KEY_PATTERN = "*.key.pem"


def prepare_relay(database: str, campaign_file: Path) -> tuple[Campaign, list[int]]:
    """Prepare the database of a relay; return the campaign and the slots whose new links were left out.

    Raises:
        SettingsError: no relay, a private key in the folder, or as `register`.
        CampaignError, CertificateError: the folder is damaged.
    """
    folder = folder_of_campaign_json(campaign_file)
    keys = [path.name for path in folder.path.rglob(KEY_PATTERN)]
    if keys:
        raise SettingsError(
            "the relay must not hold the curator's private key", value=keys[0], hint="Leave it with the curator."
        )
    return register_campaign_in_database(database, campaign_file, relay=True)


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
    return batch_sender_over_http(url, campaign.name, read_or_make_token(token_file, make=False))


def private_folder(folder: Path) -> Path:
    """Return a folder, made for its owner alone if it is absent."""
    with folder_errors(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
    return folder


def run_receiver(settings: ServerSettings, listening: socket.socket, campaign: Campaign, folder: Path) -> None:
    """Store the batches that the relay sends, until SIGTERM or SIGINT."""
    token = read_or_make_token(folder / TOKEN_FILE, make=True)
    serve_app(create_receiver_app(campaign, folder, token, rate=settings.rate_limit), settings, listening)

"""Curator's side of a relay: takes batches over HTTP and stores each as a file before it is confirmed.

A batch is named by its SHA-256, so that sending it again stores nothing twice. Only the relay has the token.
"""

from __future__ import annotations

import os
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

from crowdveil.campaign.document import Campaign
from crowdveil.campaign.report import NAME, SUFFIX, most_batch_bytes, parse_batch
from crowdveil.errors import CampaignError
from crowdveil.service.app import NOT_STORED, content_length, read_body
from crowdveil.service.problems import BATCH_MEDIA_TYPE, Problem, on_http_error, on_problem
from crowdveil.service.rate_limit import RateLimit
from crowdveil.service.relay.forwarder import confirmation_body
from crowdveil.service.security import RequestGuard


def create_receiver(campaign: Campaign, folder: Path, token: str, *, rate: RateLimit | None = None) -> Starlette:
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
        return Response(confirmation_body(name), headers=NOT_STORED, media_type="application/json")

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

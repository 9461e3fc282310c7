"""Routes of the service: immutable campaign documents, links, reports, and the worker's page.

Checks of a report, in this order: address, length, media type, token, stored already, days of the campaign, symbols. A
token travels in the header Authorization only.
"""

from __future__ import annotations

import asyncio
import contextlib
import mimetypes
import re
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles

from crowdveil.campaign.rules.document import digest_of_name
from crowdveil.campaign.rules.report import REPORT_ID
from crowdveil.campaign.rules.token import Token
from crowdveil.campaign.service.problems import (
    REPORT_MEDIA_TYPE,
    Problem,
    on_http_error,
    on_problem,
    page_for_people,
    problem_response,
)
from crowdveil.campaign.service.rate_limit import RateLimit
from crowdveil.campaign.service.security import RequestGuard
from crowdveil.campaign.service.store import Store

CAMPAIGN_MEDIA_TYPE = "application/vnd.crowdveil.campaign.v1+json"
IMMUTABLE = {"Cache-Control": "public, max-age=31536000, immutable"}
NOT_STORED = {"Cache-Control": "no-store"}
CAMPAIGN_PATH = "/v1/campaigns/{hash}"
REPORT_PATH = CAMPAIGN_PATH + "/reports/{report_id}"
STATIC = StaticFiles(packages=[("crowdveil.campaign.service", "static")])
mimetypes.add_type("text/javascript", ".mjs")
_SCHEME = re.compile("bearer +(.*)", re.IGNORECASE)
_NUMBER = re.compile("0|[1-9][0-9]{0,5}")


def create_app(
    store: Store,
    *,
    curator_routes: Sequence[BaseRoute] = (),
    on_stop: Callable[[], None] | None = None,
    rate: RateLimit | None = None,
) -> Starlette:
    """Return the application of a store.

    Args:
        store: open database; `request.app.state.store`.
        curator_routes: routes of the curator's pages, below /curator/.
        on_stop: function called after the last request.
        rate: bound on the requests of each client address; None for none.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        if on_stop is not None:
            await run_in_threadpool(on_stop)

    routes: list[BaseRoute] = [
        Route("/", _home_page),
        Route("/favicon.ico", _icon),
        *(Route(f"/{path}", partial(_with_slash, path)) for path in ("a", "curator")[: 1 + bool(curator_routes)]),
        Route("/a/", _index_page),
        Route("/static/{name}", _named_static_file),
        Route(CAMPAIGN_PATH, _campaign_document),
        Route(CAMPAIGN_PATH + "/parts/{number}", _assignment_part),
        Route(CAMPAIGN_PATH + "/pictures/{sha256}", _picture_response),
        Route(CAMPAIGN_PATH + "/link", _link_and_campaign_state),
        Route(REPORT_PATH, _receipt, methods=["GET"]),
        Route(REPORT_PATH, _put_report, methods=["PUT"]),
        Route("/healthz", _healthz),
        Route("/readyz", _ready_response),
        Route("/openapi.json", _openapi_response),
    ]
    handlers = {Problem: on_problem, HTTPException: on_http_error, SQLAlchemyError: _on_database_error}
    app = Starlette(
        routes=[*routes, *curator_routes],
        middleware=[Middleware(RequestGuard, rate=rate)],
        exception_handlers=handlers,
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.store = store
    app.state.pages = [("a/", "paste"), *([("curator/", "login")] if curator_routes else [])]
    return app


async def _home_page(request: Request) -> Response:
    return page_for_people(request, "home")


async def _icon(request: Request) -> Response:
    return await _static_file(request, "icon.svg")


async def _with_slash(path: str, _: Request) -> Response:
    """Redirect an address without its final slash to the page; the browser keeps the part after the #."""
    return RedirectResponse(f"{path}/", 308, NOT_STORED)


async def _index_page(request: Request) -> Response:
    return await _static_file(request, "index.html")


async def _named_static_file(request: Request) -> Response:
    return await _static_file(request, request.path_params["name"])


async def _campaign_document(request: Request) -> Response:
    document = await run_in_threadpool(_store_of_app(request).document, _campaign_digest_of_path(request))
    return Response(document, headers=IMMUTABLE, media_type=CAMPAIGN_MEDIA_TYPE)


async def _assignment_part(request: Request) -> Response:
    number = request.path_params["number"]
    if not _NUMBER.fullmatch(number):
        raise Problem("unknown")
    part = await run_in_threadpool(_store_of_app(request).part, _campaign_digest_of_path(request), int(number))
    return Response(part, headers=IMMUTABLE, media_type=CAMPAIGN_MEDIA_TYPE)


async def _picture_response(request: Request) -> Response:
    named = request.path_params["sha256"]
    if not re.fullmatch("[0-9a-f]{64}", named):
        raise Problem("unknown")
    data, kind = await run_in_threadpool(
        _store_of_app(request).picture, _campaign_digest_of_path(request), bytes.fromhex(named)
    )
    return Response(data, headers=IMMUTABLE, media_type=kind)


async def _link_and_campaign_state(request: Request) -> Response:
    store, digest = _store_of_app(request), _campaign_digest_of_path(request)
    token = _token_of_request(request)

    def states() -> dict[str, str]:
        link, state = store.link_state(digest, token), store.state(digest)
        return {"state": link, "campaign": store.campaign(digest).state_on(store.today()) if state == "open" else state}

    return JSONResponse(await run_in_threadpool(states), headers=NOT_STORED)


async def _receipt(request: Request) -> Response:
    store, digest, report_id = _store_of_app(request), _campaign_digest_of_path(request), _report_id_of_request(request)
    receipt = await run_in_threadpool(store.receipt, digest, _token_of_request(request), report_id)
    return Response(receipt, headers=NOT_STORED, media_type="application/json")


async def _put_report(request: Request) -> Response:
    store, digest = _store_of_app(request), _campaign_digest_of_path(request)
    campaign = await run_in_threadpool(store.campaign, digest)
    report_id = _report_id_of_request(request)
    if content_length(request, campaign.sent_bytes) != campaign.sent_bytes:
        raise Problem("length")
    if request.headers.get("content-type", "").strip().lower() != REPORT_MEDIA_TYPE:
        raise Problem("media-type")
    token = _token_of_request(request)
    body = await read_body(request, campaign.sent_bytes)
    stored = await asyncio.wrap_future(await run_in_threadpool(store.submit, digest, token, report_id, body))
    receipt = store.receipt_of(digest, report_id, stored)
    return Response(receipt, headers=NOT_STORED, media_type="application/json")


async def _healthz(_: Request) -> Response:
    return JSONResponse({"status": "alive"}, headers=NOT_STORED)


async def _ready_response(request: Request) -> Response:
    if not await run_in_threadpool(_store_of_app(request).is_ready):
        raise Problem("busy")
    return JSONResponse({"status": "ready"}, headers=NOT_STORED)


async def _openapi_response(request: Request) -> Response:
    return await _static_file(request, "openapi.json")


async def _on_database_error(_: Request, error: Exception) -> Response:
    """Refuse for now: the database is down, busy or full."""
    return problem_response("busy")


def _store_of_app(request: Request) -> Store:
    store: Store = request.app.state.store
    return store


def _campaign_digest_of_path(request: Request) -> bytes:
    """Return the campaign of the address; raises Problem `unknown`."""
    try:
        return digest_of_name(request.path_params["hash"])
    except ValueError:
        raise Problem("unknown") from None


def _report_id_of_request(request: Request) -> str:
    report_id: str = request.path_params["report_id"]
    if not REPORT_ID.fullmatch(report_id):
        raise Problem("report-id")
    return report_id


def _token_of_request(request: Request) -> Token:
    """Return the token of the header Authorization; raises Problem `token`."""
    given = request.headers.getlist("authorization")
    match = _SCHEME.fullmatch(given[0]) if len(given) == 1 else None
    if match is None:
        raise Problem("token")
    try:
        return Token.from_text(match[1])
    except ValueError:
        raise Problem("token") from None


def content_length(request: Request, most: int) -> int:
    """Return the number in the header Content-Length; raises Problem `no-length` or `too-long`."""
    given = request.headers.get("content-length")
    if given is None:
        raise Problem("no-length")
    if not (given.isascii() and given.isdigit()) or len(given) > 12 or int(given) > most:
        raise Problem("too-long")
    return int(given)


async def read_body(request: Request, length: int) -> bytes:
    """Return the body; raises Problem `length` or `too-long`. Bytes are counted while they arrive."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > length:
                raise Problem("too-long")
    except ClientDisconnect:
        raise Problem("length") from None
    if len(body) != length:
        raise Problem("length")
    return bytes(body)


async def _static_file(request: Request, name: str) -> Response:
    """Return a file of the worker's page, or 304 if the client has it; raises HTTPException 404."""
    response = await STATIC.get_response(name, request.scope)
    response.headers["Cache-Control"] = "no-cache"
    return response

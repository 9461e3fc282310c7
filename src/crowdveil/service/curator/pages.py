"""Curator's pages, without scripts: one number while the campaign is open; closing, inference and downloads after it.

The pages are below /curator/. They show no count by task, slot or link, and below `min_reports` no count at all. The
browser asks for the curator's token as the password (Basic, RFC 7617); only pages of this host can change anything.
"""

from __future__ import annotations

import hmac
from base64 import b64decode
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from crowdveil.campaign.document import characters_to_compare
from crowdveil.channels.rounding import format_bound
from crowdveil.errors import SettingsError
from crowdveil.privacy.campaign_sentences import question_sentences, round_sentences
from crowdveil.release.results_page import content_security_policy
from crowdveil.service.campaign_registration import curator_hash
from crowdveil.service.curator.results import DOWNLOADS, PAGE_FILE, CampaignResult, Results
from crowdveil.service.problems import Problem
from crowdveil.service.schema import campaigns
from crowdveil.service.store import Store

HOME = "/curator/"
HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
"""Under `no-referrer`, browsers send the Origin of a form as null."""
ASK_FOR_TOKEN = {"WWW-Authenticate": 'Basic realm="password: the token in curator-token.txt", charset="UTF-8"'}
_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json", "html": "text/html", "txt": "text/plain"}


def curator_routes(store: Store) -> list[BaseRoute]:
    """Return the routes of the curator's pages."""
    pages = _Pages(store, Results(store))
    return [
        Route(HOME, pages.home, methods=["GET"]),
        Route(HOME + "style.css", _style, methods=["GET"]),
        Route(HOME + "close", pages.close, methods=["POST"]),
        Route(HOME + "infer", pages.infer, methods=["POST"]),
        Route(HOME + "results", pages.results, methods=["GET"]),
        Route(HOME + "files/{name:path}", pages.file, methods=["GET"]),
    ]


class _Pages:
    """Pages of one store; every page needs the token of its campaign."""

    def __init__(self, store: Store, results: Results) -> None:
        self._store = store
        self._results = results

    async def home(self, request: Request) -> Response:
        return await self._overview(await self._campaign(request))

    async def close(self, request: Request) -> Response:
        digest = await self._campaign(request)
        return await self._respond_after(digest, self._store.close_campaign, lambda _: _redirect_home())

    async def infer(self, request: Request) -> Response:
        digest = await self._campaign(request)
        return await self._respond_after(digest, self._results.compute, lambda _: _redirect_home())

    async def results(self, request: Request) -> Response:
        def respond(result: Any) -> Response:
            headers = {**HEADERS, "Content-Security-Policy": f"{content_security_policy()}; frame-ancestors 'none'"}
            return Response(result.files[PAGE_FILE], headers=headers, media_type=_TYPES["html"])

        return await self._respond_after(await self._campaign(request), self._results.compute, respond)

    async def file(self, request: Request) -> Response:
        name = request.path_params["name"]

        def respond(result: Any) -> Response:
            if name not in result.files:
                raise Problem("unknown")
            saved_as = name.replace("/", "-")
            headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{saved_as}"'}
            return Response(result.files[name], headers=headers, media_type=_TYPES[name.rpartition(".")[2]])

        return await self._respond_after(await self._campaign(request), self._results.compute, respond)

    async def _respond_after(
        self, digest: bytes, compute: Callable[[bytes], Any], respond: Callable[[Any], Response]
    ) -> Response:
        """Return the response for a result, or the overview with the reason why there is none."""
        try:
            result = await run_in_threadpool(compute, digest)
        except SettingsError as error:
            return await self._overview(digest, 409, str(error))
        return respond(result)

    async def _overview(self, digest: bytes, status: int = 200, message: str = "") -> Response:
        values = await run_in_threadpool(self._overview_values, digest)
        text = _environment().get_template("overview.html").render(**values, message=message)
        return Response(text, status, HEADERS, "text/html")

    def _overview_values(self, digest: bytes) -> dict[str, Any]:
        campaign, state = self._store.campaign(digest), self._store.state(digest)
        result = self._results.find(digest) if state == "closed" else None
        return {
            "campaign": campaign,
            "compared": characters_to_compare(campaign.name),
            "state": campaign.state_on(self._store.today()) if state == "open" else state,
            "accepts_reports": state == "open",
            "count": self._store.count(digest),
            "epsilon": format_bound(campaign.epsilon, 4),
            "worker_epsilon": format_bound(campaign.worker_epsilon, 4),
            "downloads": [] if result is None else _downloads(result),
            "asked": (*question_sentences(campaign), *round_sentences(campaign)),
            "warnings": () if result is None else result.warnings,
        }

    async def _campaign(self, request: Request) -> bytes:
        """Return the campaign whose token a request has.

        Raises:
            HTTPException: 401 without one.
            Problem: `forbidden` if a page of another site sent a form.
        """
        if request.method == "POST":
            _require_same_origin(request)
        digest = await run_in_threadpool(campaign_of_token, self._store, _password(request))
        if digest is None:
            raise HTTPException(401, headers=HEADERS | ASK_FOR_TOKEN)
        return digest


def campaign_of_token(store: Store, token: str) -> bytes | None:
    """Return the campaign whose curator's token this is; None if there is none."""
    query = select(campaigns.c.hash, campaigns.c.curator_hash).where(campaigns.c.curator_hash.is_not(None))
    with store.engine.connect() as connection:
        rows = connection.execute(query).all()
    found = [row.hash for row in rows if hmac.compare_digest(row.curator_hash, curator_hash(row.hash, token))]
    return bytes(found[0]) if found else None


def _password(request: Request) -> str:
    """Return the password of the header Authorization; empty without one."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    try:
        return b64decode(given, validate=True).decode().partition(":")[2] if scheme.lower() == "basic" else ""
    except ValueError:
        return ""


def _require_same_origin(request: Request) -> None:
    """Refuse a request whose Origin is not the host that it was sent to; raises Problem `forbidden`."""
    origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
    if not host or origin not in (f"https://{host}", f"http://{host}"):
        raise Problem("forbidden")


def _downloads(result: CampaignResult) -> list[tuple[str, str]]:
    """Return the files of a result with what they hold, those of each question together."""
    order, described = list(DOWNLOADS), []
    for name in sorted(result.files, key=lambda name: (name.rpartition("/")[0], order.index(name.rpartition("/")[2]))):
        described.append((name, DOWNLOADS[name.rpartition("/")[2]]))
    return described


async def _style(_: Request) -> Response:
    return Response(_style_sheet(), headers={"Cache-Control": "no-cache"}, media_type="text/css")


def _redirect_home() -> RedirectResponse:
    return RedirectResponse(HOME, 303, HEADERS)


@cache
def _environment() -> Environment:
    loader = PackageLoader("crowdveil.service.curator", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@cache
def _style_sheet() -> str:
    return (files("crowdveil.service.curator") / "templates" / "curator.css").read_text("utf-8")

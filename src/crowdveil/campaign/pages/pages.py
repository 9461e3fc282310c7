"""Curator's pages, without scripts: one number while the campaign is open; closing, inference and downloads after it.

The pages are below /curator/. Their addresses are relative, so that a proxy may serve them below a path. They show no
count by task, slot or link, and below `min_reports` no count at all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from crowdveil.campaign.pages.results import DOWNLOADS, PAGE_FILE, CampaignResult, ResultCache
from crowdveil.campaign.pages.session import (
    Session,
    campaign_of_curator_token,
    end_sessions,
    read_same_origin_form,
    read_session,
    require_csrf,
    start_session,
)
from crowdveil.campaign.rules.document import spaced_name_to_compare
from crowdveil.campaign.service.problems import Problem
from crowdveil.campaign.service.store import Store
from crowdveil.campaign.statement.sentences import question_sentences
from crowdveil.channels.rounding import format_bound
from crowdveil.display.counts import number_of
from crowdveil.errors import SettingsError
from crowdveil.pages.results_page import content_security_policy

HOME = "/curator/"
HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
"""Under `no-referrer`, browsers send the Origin of a form as null."""
_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json", "html": "text/html", "txt": "text/plain"}
_WRONG_TOKEN = "This service has no campaign with this token. The token is in the file curator-token.txt."
_UNCONFIRMED = "Confirm that the campaign ends now."


def curator_routes(store: Store) -> list[BaseRoute]:
    """Return the routes of the curator's pages."""
    pages = _Pages(store, ResultCache(store))
    return [
        Route(HOME, pages.home, methods=["GET"]),
        Route(HOME + "style.css", _style_sheet_response, methods=["GET"]),
        Route(HOME + "login", pages.login, methods=["POST"]),
        Route(HOME + "logout", pages.log_out_everywhere, methods=["POST"]),
        Route(HOME + "close", pages.respond_to_close, methods=["POST"]),
        Route(HOME + "infer", pages.infer, methods=["POST"]),
        Route(HOME + "results", pages.show_results_page, methods=["GET"]),
        Route(HOME + "files/{name:path}", pages.download_result_file, methods=["GET"]),
    ]


class _Pages:
    """Pages of one store; every page but the login needs a session."""

    def __init__(self, store: Store, results: ResultCache) -> None:
        self._store = store
        self._results = results

    async def home(self, request: Request) -> Response:
        session = await self._session(request)
        return _render_page("login.html") if session is None else await self._overview(session)

    async def login(self, request: Request) -> Response:
        form = await read_same_origin_form(request)
        digest = await run_in_threadpool(campaign_of_curator_token, self._store, form.get("token", "").strip())
        if digest is None:
            return _render_page("login.html", 401, message=_WRONG_TOKEN)
        response = _redirect_home()
        await run_in_threadpool(start_session, self._store, digest, response)
        return response

    async def log_out_everywhere(self, request: Request) -> Response:
        session, _ = await self._session_and_csrf_checked_form(request)
        response = _redirect_home()
        await run_in_threadpool(end_sessions, self._store, session.digest, response)
        return response

    async def respond_to_close(self, request: Request) -> Response:
        session, form = await self._session_and_csrf_checked_form(request)
        if form.get("confirm") != "close":
            return await self._overview(session, 400, _UNCONFIRMED)
        return await self._respond_with_result_or_error(
            session, partial(self._store.close_and_count_reports, session.digest), lambda _: _redirect_home()
        )

    async def infer(self, request: Request) -> Response:
        session, _ = await self._session_and_csrf_checked_form(request)
        return await self._respond_with_result(session, lambda _: _redirect_home())

    async def show_results_page(self, request: Request) -> Response:
        session = await self._session_or_forbidden(request)

        def respond(result: Any) -> Response:
            headers = {**HEADERS, "Content-Security-Policy": f"{content_security_policy()}; frame-ancestors 'none'"}
            return Response(result.files[PAGE_FILE], headers=headers, media_type=_TYPES["html"])

        return await self._respond_with_result(session, respond)

    async def download_result_file(self, request: Request) -> Response:
        session, name = await self._session_or_forbidden(request), request.path_params["name"]

        def respond(result: Any) -> Response:
            if name not in result.files:
                raise Problem("unknown")
            saved_as = name.replace("/", "-")
            headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{saved_as}"'}
            return Response(result.files[name], headers=headers, media_type=_TYPES[name.rpartition(".")[2]])

        return await self._respond_with_result(session, respond)

    async def _respond_with_result(self, session: Session, respond: Callable[[Any], Response]) -> Response:
        return await self._respond_with_result_or_error(session, partial(self._results.get, session.digest), respond)

    async def _respond_with_result_or_error(
        self, session: Session, compute: Callable[[], Any], respond: Callable[[Any], Response]
    ) -> Response:
        """Return the response for a result, or the overview with the reason why there is none."""
        try:
            result = await run_in_threadpool(compute)
        except SettingsError as error:
            return await self._overview(session, 409, str(error))
        return respond(result)

    async def _overview(self, session: Session, status: int = 200, message: str = "") -> Response:
        return _render_page(
            "overview.html", status, **await run_in_threadpool(self._overview_values, session), message=message
        )

    def _overview_values(self, session: Session) -> dict[str, Any]:
        campaign, state = self._store.campaign(session.digest), self._store.state(session.digest)
        result = self._results.computed_result_or_none(session.digest) if state == "closed" else None
        return {
            "campaign": campaign,
            "compared": spaced_name_to_compare(campaign.name),
            "state": campaign.state_on(self._store.today()) if state == "open" else state,
            "accepts_reports": state == "open",
            "count": self._store.visible_report_count(session.digest),
            "epsilon": format_bound(campaign.epsilon, 4),
            "worker_epsilon": format_bound(campaign.worker_epsilon, 4),
            "csrf": session.csrf,
            "downloads": [] if result is None else _download_files_with_descriptions(result),
            "asked": question_sentences(campaign),
            "warnings": () if result is None else result.warnings,
        }

    async def _session(self, request: Request) -> Session | None:
        return await run_in_threadpool(read_session, self._store, request)

    async def _session_or_forbidden(self, request: Request) -> Session:
        session = await self._session(request)
        if session is None:
            raise Problem("forbidden")
        return session

    async def _session_and_csrf_checked_form(self, request: Request) -> tuple[Session, dict[str, str]]:
        """Return the session and the form of a request that changes something."""
        form, session = await read_same_origin_form(request), await self._session_or_forbidden(request)
        require_csrf(session, form)
        return session, form


def _download_files_with_descriptions(result: CampaignResult) -> list[tuple[str, str]]:
    """Return the files of a result with what they hold, those of each question together."""
    order, described = list(DOWNLOADS), []
    for name in sorted(result.files, key=lambda name: (name.rpartition("/")[0], order.index(name.rpartition("/")[2]))):
        described.append((name, DOWNLOADS[name.rpartition("/")[2]]))
    return described


async def _style_sheet_response(_: Request) -> Response:
    return Response(_style_sheet(), headers={"Cache-Control": "no-cache"}, media_type="text/css")


def _redirect_home() -> RedirectResponse:
    return RedirectResponse("./", 303, HEADERS)


def _render_page(template: str, status: int = 200, **values: Any) -> Response:
    text = _environment().get_template(template).render({"message": "", "number_of": number_of, **values})
    return Response(text, status, HEADERS, "text/html")


@cache
def _environment() -> Environment:
    loader = PackageLoader("crowdveil.campaign.pages", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@cache
def _style_sheet() -> str:
    return (files("crowdveil.campaign.pages") / "templates" / "curator.css").read_text("utf-8")

"""Refusals of the service as `application/problem+json` (RFC 9457), and as pages for people.

`type` is `/problems/<name>`; a device chooses its sentence by it. `detail` never repeats a value of the request. A
browser that opens an address outside the interface gets a page, in English or German, with the way to go on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
REPORT_MEDIA_TYPE = "application/vnd.crowdveil.report.v1"
BATCH_MEDIA_TYPE = "application/vnd.crowdveil.batch.v1"
RETRY_SECONDS = 5
CLOSE = {"Connection": "close"}
"""Header of a refusal that leaves a body unread."""


class _ProblemKind(NamedTuple):
    """Status, title and detail of one kind of refusal."""

    status: int
    title: str
    detail: str


PROBLEMS: dict[str, _ProblemKind] = {
    "request": _ProblemKind(400, "Malformed request", "The request breaks a rule of HTTP."),
    "length": _ProblemKind(400, "Wrong length", "All reports of this campaign have the same number of bytes."),
    "symbol": _ProblemKind(400, "Unknown symbol", "A symbol of the report is not an output of its channel."),
    "batch": _ProblemKind(400, "Wrong batch", "A batch is named by its SHA-256 and has the campaign's form."),
    "report-id": _ProblemKind(400, "Malformed report id", "A report id is 16 bytes in lower-case hexadecimal."),
    "token": _ProblemKind(401, "Unknown token", "The token is missing, malformed, or not one of this campaign."),
    "early": _ProblemKind(403, "Campaign not open yet", "Reports are accepted from the campaign's first day on."),
    "link-revoked": _ProblemKind(403, "Link revoked", "The curator replaced this link with another one."),
    "forbidden": _ProblemKind(403, "Forbidden", "The request is not allowed."),
    "unknown": _ProblemKind(404, "Not found", "There is nothing at this address."),
    "method": _ProblemKind(405, "Method not allowed", "The header Allow names the methods of this address."),
    "deadline": _ProblemKind(408, "Too slow", "The body did not arrive within the time allowed."),
    "link-used": _ProblemKind(409, "Link used", "Another report was stored with this link."),
    "report-id-taken": _ProblemKind(409, "Report id taken", "Another link stored a report under this id."),
    "closed": _ProblemKind(410, "Campaign closed", "The campaign accepts no more reports."),
    "purged": _ProblemKind(410, "Campaign purged", "The data of this campaign were deleted."),
    "no-length": _ProblemKind(411, "Length required", "A report needs the header Content-Length."),
    "too-long": _ProblemKind(413, "Too long", "The request is longer than any valid one."),
    "media-type": _ProblemKind(415, "Unknown media type", f"A report has the media type {REPORT_MEDIA_TYPE}."),
    "rate": _ProblemKind(429, "Too many requests", "Send the request again after the time in Retry-After."),
    "busy": _ProblemKind(503, "Not available", "Send the request again after the time in Retry-After."),
    "internal": _ProblemKind(500, "Internal error", "The service failed. The request can be sent again."),
}
"""Every refusal by its name."""
_BY_STATUS = {400: "request", 403: "forbidden", 404: "unknown", 405: "method", 413: "too-long"}
_HEADERS: dict[str, dict[str, str]] = {
    "token": {"WWW-Authenticate": "Bearer"},
    "deadline": CLOSE,
    "no-length": CLOSE,
    "too-long": CLOSE,
    "rate": {"Retry-After": str(RETRY_SECONDS)},
    "busy": {"Retry-After": str(RETRY_SECONDS)},
}


class Problem(Exception):
    """Refusal of a request; `name` is one of `PROBLEMS`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def problem_body(name: str) -> bytes:
    """Return the JSON of a refusal."""
    kind = PROBLEMS[name]
    fields = {"type": f"/problems/{name}", "title": kind.title, "status": kind.status, "detail": kind.detail}
    return json.dumps(fields).encode()


def problem_response(name: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response of a refusal, with the headers of its kind and further ones."""
    named = {"Cache-Control": "no-store", **_HEADERS.get(name, {}), **(headers or {})}
    return Response(problem_body(name), PROBLEMS[name].status, named, MEDIA_TYPE)


async def on_problem(request: Request, error: Exception) -> Response:
    """Return the response of a `Problem`."""
    assert isinstance(error, Problem)
    return _page_or_problem(request, error.name)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Return the response of a refusal by the framework, such as an unknown address or method."""
    assert isinstance(error, HTTPException)
    return _page_or_problem(request, _BY_STATUS.get(error.status_code, "request"), error.headers)


PAGES = {
    "en": {
        "home": ("This service collects answers", "To answer, open the link you got, or paste it here."),
        "unknown": (
            "There is nothing at this address",
            "Open the link you got, exactly as it is, or paste it here.",
        ),
        "forbidden": ("You are not logged in", "Your login has expired, or the form is too old. Log in and try again."),
        "other": ("This did not work", "Wait a moment, then try again."),
        "paste": "Paste your link",
        "login": "Log in as the curator",
    },
    "de": {
        "home": (
            "Dieser Dienst sammelt Antworten",
            "Zum Antworten öffnen Sie den Link, den Sie bekommen haben, oder fügen Sie ihn hier ein.",
        ),
        "unknown": (
            "Unter dieser Adresse ist nichts",
            "Öffnen Sie den Link, den Sie bekommen haben, genau so, wie er ist, oder fügen Sie ihn hier ein.",
        ),
        "forbidden": (
            "Sie sind nicht angemeldet",
            "Die Anmeldung ist abgelaufen, oder das Formular ist zu alt. Melden Sie sich an und versuchen Sie es noch "
            "einmal.",
        ),
        "other": ("Das hat nicht geklappt", "Warten Sie einen Augenblick, und versuchen Sie es dann noch einmal."),
        "paste": "Link einfügen",
        "login": "Als auswertende Stelle anmelden",
    },
}
"""Heading and sentence of pages for people, and the words on their buttons, by language."""


def page_for_people(
    request: Request, name: str, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a page of `PAGES` with relative addresses, which are right below any path of a proxy."""
    language = "de" if request.headers.get("accept-language", "").lower().startswith("de") else "en"
    words = PAGES[language]
    heading, sentence = words.get(name, words["other"])
    buttons = [(path, words[word]) for path, word in getattr(request.app.state, "pages", ())]
    root = "../" * (request.url.path.count("/") - 1) or "./"
    text = (
        _environment()
        .get_template("page.html")
        .render(language=language, heading=heading, sentence=sentence, buttons=buttons, root=root)
    )
    always = {"Cache-Control": "no-store", "Vary": "Accept, Accept-Language"}
    return Response(text, status, {**always, **(headers or {})}, "text/html")


def _page_or_problem(request: Request, name: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a page where a person opened the address in a browser, and the problem where a program called it."""
    opened = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/")
    if not opened:
        return problem_response(name, headers)
    return page_for_people(request, name, PROBLEMS[name].status, {**_HEADERS.get(name, {}), **(headers or {})})


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("crowdveil.campaign.service", "templates"), autoescape=True, undefined=StrictUndefined
    )

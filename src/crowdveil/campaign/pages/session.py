"""Sessions of the curator's pages: login by the curator's token, a signed cookie, and protection of forms.

The cookie names the campaign and a random session. It is signed with a key that is derived from the campaign's receipt
key, the hash of the curator's token and the number of logouts, so that it is valid in every process of the service, for
one campaign only, and until somebody logs out of that campaign, on any device.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import parse_qs

from itsdangerous import BadSignature, URLSafeTimedSerializer
from sqlalchemy import select, update
from starlette.requests import Request
from starlette.responses import Response

from crowdveil.campaign.rules.document import base64url_of_digest, digest_of_name
from crowdveil.campaign.service.app import content_length, read_body
from crowdveil.campaign.service.campaign_registration import curator_token_hash
from crowdveil.campaign.service.problems import Problem
from crowdveil.campaign.service.schema import WRITES, campaigns
from crowdveil.campaign.service.store import Store

COOKIE = "__Host-crowdveil-curator"
"""The prefix makes browsers insist on Secure, the path / and this very host."""
MAX_COOKIE = 512
"""Largest number of characters of a cookie; a longer one is not decompressed."""
SESSION_SECONDS = 8 * 3600
MAX_FORM_BYTES = 4_096
KEY_LABEL = b"crowdveil-curator-session/1"
TOKEN_CHARACTERS = 43


@dataclass(frozen=True)
class Session:
    """Login of the curator of one campaign.

    Attributes:
        digest: the campaign.
        identifier: random text of this login.
        csrf: value of the hidden field of every form.
    """

    digest: bytes
    identifier: str
    csrf: str


def campaign_of_curator_token(store: Store, token: str) -> bytes | None:
    """Return the campaign whose curator's token this is; None if there is none."""
    found = None
    if len(token) == TOKEN_CHARACTERS and token.isascii():
        for digest in store.digests_of_unpurged_campaigns():
            held = _session_secrets(store, digest)
            if held is not None and hmac.compare_digest(held[1], curator_token_hash(digest, token)):
                found = digest
    return found


def start_session(store: Store, digest: bytes, response: Response) -> None:
    """Set the cookie of a new session."""
    key = _session_signing_key(store, digest)
    assert key is not None
    value = _serializer(key).dumps([base64url_of_digest(digest), secrets.token_urlsafe(16)])
    response.set_cookie(
        COOKIE, str(value), max_age=SESSION_SECONDS, path="/", secure=True, httponly=True, samesite="strict"
    )


def end_sessions(store: Store, digest: bytes, response: Response) -> None:
    """End all sessions of a campaign, also those with a copied cookie, and delete the cookie."""
    with store.engine.execution_options(**{WRITES: True}).begin() as connection:
        this = update(campaigns).where(campaigns.c.hash == digest)
        connection.execute(this.values(logouts=campaigns.c.logouts + 1))
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")


def read_session(store: Store, request: Request) -> Session | None:
    """Return the session of a request; None without a valid cookie that is younger than `SESSION_SECONDS`."""
    value = request.cookies.get(COOKIE, "")
    if len(value) > MAX_COOKIE:
        return None
    try:
        _, (name, identifier) = _serializer(b"").loads_unsafe(value)
        digest = digest_of_name(name)
    except (TypeError, ValueError):
        return None
    key = _session_signing_key(store, digest)
    if key is None:
        return None
    try:
        _serializer(key).loads(value, max_age=SESSION_SECONDS)
    except BadSignature:
        return None
    return Session(digest, identifier, _csrf_token_of_session(key, identifier))


async def read_same_origin_form(request: Request) -> dict[str, str]:
    """Return the fields of a form of this site.

    Raises:
        Problem: `forbidden` if the form was sent by a page of another site, `media-type`, `too-long`, `length`.
    """
    _require_same_origin(request)
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise Problem("media-type")
    body = await read_body(request, content_length(request, MAX_FORM_BYTES))
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=8)
    except ValueError:
        raise Problem("request") from None
    return {name: values[0] for name, values in fields.items()}


def require_csrf(session: Session, form: dict[str, str]) -> None:
    """Refuse a form without the session's hidden value; raises Problem `forbidden`."""
    if not hmac.compare_digest(session.csrf.encode(), form.get("csrf", "").encode()):
        raise Problem("forbidden")


def _require_same_origin(request: Request) -> None:
    """Refuse a request whose Origin is not the host that it was sent to; raises Problem `forbidden`."""
    origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
    if not host or origin not in (f"https://{host}", f"http://{host}"):
        raise Problem("forbidden")


def _session_secrets(store: Store, digest: bytes) -> tuple[bytes, bytes, int] | None:
    """Return the receipt key, the hash of the curator's token and the number of logouts; None without a campaign."""
    query = select(campaigns.c.receipt_key, campaigns.c.curator_hash, campaigns.c.logouts)
    with store.engine.connect() as connection:
        row = connection.execute(query.where(campaigns.c.hash == digest)).first()
    return None if row is None or None in row else (bytes(row[0]), bytes(row[1]), row[2])


def _session_signing_key(store: Store, digest: bytes) -> bytes | None:
    keys = _session_secrets(store, digest)
    return None if keys is None else hmac.digest(keys[0], KEY_LABEL + keys[1] + keys[2].to_bytes(8), "sha256")


def _serializer(key: bytes) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(key, salt=KEY_LABEL, signer_kwargs={"digest_method": sha256})


def _csrf_token_of_session(key: bytes, identifier: str) -> str:
    return hmac.digest(key, b"csrf:" + identifier.encode(), "sha256").hex()

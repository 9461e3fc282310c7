"""Tokens and links: one secret per worker, from `secrets`; only its hash is kept.

A token is the slot (4 bytes, big endian) and 16 random bytes. The hash binds it to one campaign.
"""

import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Self

from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import MAX_SLOTS

SLOT_BYTES, SECRET_BYTES = 4, 16
TOKEN_CHARACTERS = 27
PREFIX = b"crowdveil-token/1"
VERSION = "1"
PAGE_PATH = "/a/"
"""Path of the answering page below the address of the service."""
_TOKEN = re.compile(f"[A-Za-z0-9_-]{{{TOKEN_CHARACTERS}}}")


@dataclass(frozen=True, slots=True)
class Token:
    """Slot and secret of one link."""

    slot: int
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.slot < MAX_SLOTS or len(self.secret) != SECRET_BYTES:
            raise CampaignError("token", f"a token has a slot below {MAX_SLOTS} and {SECRET_BYTES} secret bytes.")

    @classmethod
    def new(cls, slot: int) -> Self:
        """Return a token with a new secret."""
        return cls(slot, secrets.token_bytes(SECRET_BYTES))

    def to_bytes(self) -> bytes:
        """Return slot and secret, 20 bytes."""
        return self.slot.to_bytes(SLOT_BYTES, "big") + self.secret

    @property
    def text(self) -> str:
        """The 20 bytes as base64url without padding, 27 characters."""
        return urlsafe_b64encode(self.to_bytes()).rstrip(b"=").decode("ascii")

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the token of a text.

        Raises:
            CampaignError: token.
        """
        if _TOKEN.fullmatch(text):
            data = urlsafe_b64decode(text + "=")
            token = cls(int.from_bytes(data[:SLOT_BYTES], "big"), data[SLOT_BYTES:])
            if token.text == text:
                return token
        raise CampaignError("token", f"a token is {TOKEN_CHARACTERS} characters of base64url.")


def token_hash(campaign_digest: bytes, token: Token) -> bytes:
    """Return the SHA-256 of "crowdveil-token/1", the campaign's digest (32 bytes) and the token (20 bytes)."""
    return sha256(PREFIX + campaign_digest + token.to_bytes()).digest()


@dataclass(frozen=True, slots=True)
class Link:
    """Link of one worker.

    Attributes:
        url: address of the service; None for a campaign without a service.
        campaign_name: name of the campaign, 43 characters.
        token: the worker's token.
    """

    url: str | None
    campaign_name: str
    token: Token

    @property
    def fragment(self) -> str:
        """Part after the #: version, campaign and token. Browsers do not send it."""
        return f"{VERSION}.{self.campaign_name}.{self.token.text}"

    @property
    def text(self) -> str:
        """The link; without a service, the part from the # on, which follows the name of the one-file page."""
        return f"{'' if self.url is None else self.url + PAGE_PATH}#{self.fragment}"

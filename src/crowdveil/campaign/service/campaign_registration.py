"""Registration of a campaign folder in the database: document, parts, pictures, and hashes of tokens."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Connection, insert, select, update

from crowdveil.campaign.files.folder import CAMPAIGN_FILE, CampaignFolder, TokenEntry
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.service.schema import WRITES, campaigns, parts, pictures, reports, tokens
from crowdveil.campaign.service.store import Store
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import PRIVATE_FILE, folder_errors
from crowdveil.files.filesystem import open_regular, write_new_file

CURATOR_FILE = "curator-token.txt"
CURATOR_PREFIX = b"crowdveil-curator/1"
KEY_BYTES = 32
MAX_TOKEN_BYTES = 100
_CURATOR_TOKEN = re.compile("[A-Za-z0-9_-]{43}")


def curator_token_hash(digest: bytes, curator_token: str) -> bytes:
    """Return the SHA-256 of "crowdveil-curator/1", the campaign's digest and the token's 43 characters."""
    return sha256(CURATOR_PREFIX + digest + curator_token.encode()).digest()


def register_campaign(
    store: Store, folder: CampaignFolder, *, accept_second_report: bool = False, relay: bool = False
) -> list[int]:
    """Register a campaign, or bring its links up to date; return the slots whose new link was left out.

    On the first call, `curator-token.txt` is written (mode 0600) unless it exists; the database keeps its hash. A new
    link replaces an unused one. Where the old link has stored a report, the new one is left out unless
    `accept_second_report`: a second report is a second draw, and its epsilon adds to that of the first.

    Raises:
        CampaignError, CertificateError: the folder is damaged.
        SettingsError: the campaign was purged, `curator-token.txt` holds no token, or the campaign has a relay and the
            caller is none, or the reverse.
    """
    campaign = folder.campaign
    if (campaign.relay is not None) != relay:
        raise SettingsError(
            (
                "a campaign with a relay is served by crowdveil campaign relay, any other campaign by crowdveil "
                "campaign serve"
            ),
            value=campaign.name,
            hint=f"Use crowdveil campaign {'serve' if relay else 'relay'}.",
        )
    with store.engine.execution_options(**{WRITES: True}).begin() as connection:
        known = select(campaigns.c.state).where(campaigns.c.hash == campaign.digest).with_for_update()
        state = connection.execute(known).scalar_one_or_none()
        if state == "purged":
            raise SettingsError(
                "a purged campaign cannot be served", value=campaign.name, hint="A new campaign has another hash."
            )
        if state is None:
            _insert_campaign(connection, folder, campaign)
        return _insert_and_revoke_tokens(connection, campaign, folder.tokens, accept_second_report)


def _insert_campaign(connection: Connection, folder: CampaignFolder, campaign: Campaign) -> None:
    digest = campaign.digest
    connection.execute(
        insert(campaigns).values(
            hash=digest,
            document=campaign.to_bytes(),
            state="open",
            receipt_key=secrets.token_bytes(KEY_BYTES),
            curator_hash=None
            if campaign.relay
            else curator_token_hash(digest, read_or_make_token(folder.path / CURATOR_FILE)),
        )
    )
    for number in range(len(campaign.assignment_parts)):
        document = folder.checked_part_bytes(number)
        connection.execute(insert(parts).values(campaign=digest, number=number, document=document))
    for picture in {task.picture for task in campaign.tasks if task.picture is not None}:
        connection.execute(
            insert(pictures).values(
                campaign=digest,
                sha256=bytes.fromhex(picture.sha256),
                type=picture.type,
                document=folder.picture(picture.sha256),
            )
        )


def _insert_and_revoke_tokens(
    connection: Connection, campaign: Campaign, entries: Sequence[TokenEntry], accept_second_report: bool
) -> list[int]:
    """Insert new tokens and mark revoked ones; return the slots that were left out."""
    digest = campaign.digest
    held = select(tokens.c.token_hash, tokens.c.revoked).where(tokens.c.campaign == digest)
    before = {row.token_hash: row.revoked for row in connection.execute(held)}
    used = {
        row.token_hash for row in connection.execute(select(reports.c.token_hash).where(reports.c.campaign == digest))
    }
    revoked = [entry for entry in entries if entry.revoked and before.get(entry.hash) is False]
    kept = set() if accept_second_report else {entry.slot for entry in revoked if entry.hash in used}
    for entry in revoked:
        if entry.slot not in kept:
            this = (tokens.c.campaign == digest) & (tokens.c.token_hash == entry.hash)
            connection.execute(update(tokens).where(this).values(revoked=True))
    new = [
        {"campaign": digest, "token_hash": entry.hash, "slot": entry.slot, "revoked": entry.revoked}
        for entry in entries
        if entry.hash not in before and (entry.revoked or entry.slot not in kept)
    ]
    if new:
        connection.execute(insert(tokens), new)
    return sorted(kept)


def read_or_make_token(path: Path, *, make: bool = True) -> str:
    """Return the token of 43 characters in a file; with `make` it is written (mode 0600) if there is none.

    Raises:
        SettingsError: the file is missing, holds no token, or cannot be read or written.
    """
    with folder_errors(path.parent, role="the folder of the token"), suppress(FileExistsError):
        if make:
            text = secrets.token_urlsafe(KEY_BYTES)
            write_new_file(path, f"{text}\n".encode(), mode=PRIVATE_FILE)
            return text
    try:
        with open_regular(path) as stream:
            text = stream.read(MAX_TOKEN_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        text = error.strerror or "not a regular file"
    if not _CURATOR_TOKEN.fullmatch(text):
        raise SettingsError(
            f"{path.name} must hold a token of 43 characters",
            value=str(path),
            hint="Move the file away." if make else "Give the file that the other side wrote.",
        )
    return text


def register_campaign_in_database(
    url: str, campaign_file: Path, *, accept_second_report: bool = False, relay: bool = False
) -> tuple[Campaign, list[int]]:
    """Prepare a database for a campaign; return the campaign, and the slots as `register_campaign`.

    Raises:
        SettingsError: as `Store.open` and `register_campaign`, or the file is not called campaign.json.
        CampaignError, CertificateError: the folder is damaged.
    """
    folder = folder_of_campaign_json(campaign_file)
    store = Store.open(url)
    try:
        return folder.campaign, register_campaign(store, folder, accept_second_report=accept_second_report, relay=relay)
    finally:
        store.close()


def folder_of_campaign_json(campaign_file: Path) -> CampaignFolder:
    """Return the folder of a `campaign.json`.

    Raises:
        SettingsError: the file has another name.
    """
    if campaign_file.name != CAMPAIGN_FILE:
        raise SettingsError(
            f"a campaign must be given as its {CAMPAIGN_FILE}",
            value=str(campaign_file),
            hint="Give the folder that `crowdveil campaign new` wrote, or the file in it.",
        )
    return CampaignFolder(campaign_file.parent)

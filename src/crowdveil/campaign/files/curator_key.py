"""Private key of the curator of a campaign with a relay: made with the campaign, kept apart from its folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from crowdveil.campaign.rules.document import Relay
from crowdveil.campaign.settings.settings_file import CampaignSettings
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import PRIVATE_FILE, folder_errors
from crowdveil.hints import command_advice


def key_path(folder: Path) -> Path:
    """Return the file of the curator's private key: beside the folder, never in it, since the relay gets the folder."""
    return folder.parent / f"{folder.name}.key.pem"


@contextmanager
def new_curator_key(source: CampaignSettings, folder: Path) -> Iterator[Relay | None]:
    """Make the curator's key and yield the relay, or None without one; the key is removed if the campaign fails.

    Raises:
        SettingsError: `cryptography` is missing, or the file of the key exists.
    """
    if source.relay is None:
        yield None
        return
    sealing, path = require_sealing(), key_path(folder)
    key = sealing.new_key()
    with folder_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        except FileExistsError as error:
            raise SettingsError(
                "the file of the curator's key must not exist yet",
                value=str(path),
                hint=command_advice("Choose another name with {out}.", "Choose another name."),
            ) from error
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(sealing.private_key_pem(key))
            stream.flush()
            os.fsync(stream.fileno())
        yield replace(source.relay, public_key=sealing.uncompressed_public_key_hex(key))
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def require_sealing() -> ModuleType:
    """Return the module `crowdveil.campaign.relay.sealing`.

    Raises:
        SettingsError: the package of the extra `relay` is missing, or too old.
    """
    try:
        from crowdveil.campaign.relay import sealing
    except ImportError as error:
        raise SettingsError(
            "a campaign with a relay needs the package cryptography, 50 or newer",
            value=error.name,
            hint="Install it: pip install 'crowdveil[relay]'.",
        ) from error
    return sealing

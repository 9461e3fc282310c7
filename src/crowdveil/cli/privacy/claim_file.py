"""File that makes the claims of a folder: its campaign, or else the certificate of its reports."""

from pathlib import Path

from crowdveil.cli.options import CAMPAIGN_NAME
from crowdveil.errors import SettingsError

CERTIFICATE_NAME = "certificate.json"


def campaign_or_certificate_file(path: Path) -> Path:
    """Return the file whose claims are checked; a path that is no folder is that file.

    Raises:
        SettingsError: a folder without both files.
    """
    if not path.is_dir():
        return path
    found = [path / name for name in (CAMPAIGN_NAME, CERTIFICATE_NAME) if (path / name).is_file()]
    if not found:
        raise SettingsError(
            f"the folder must have a {CAMPAIGN_NAME} or a {CERTIFICATE_NAME}",
            value=str(path),
            hint="Mechanisms without a channel per cell have no certificate; crowdveil account states their loss.",
        )
    return found[0]

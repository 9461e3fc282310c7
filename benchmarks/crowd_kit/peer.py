"""Interpreter with crowd-kit: given by the user, or a virtual environment made on request."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

from crowdveil.errors import SettingsError

PACKAGE, VERSION = "crowd-kit", "1.4.2"
ASK = f"from importlib.metadata import version; import crowdkit, json; print(json.dumps(version({PACKAGE!r})))"


class Peer(NamedTuple):
    """Interpreter with crowd-kit, and the installed version."""

    python: Path
    version: str


def find_peer(python: Path) -> Peer:
    """Return the crowd-kit of an interpreter.

    Raises:
        SettingsError: it does not run, or has no crowd-kit.
    """
    try:
        done = subprocess.run([python, "-I", "-c", ASK], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SettingsError(
            f"the peer must be a Python that has {PACKAGE}",
            value=str(python),
            hint=f"Install it there (pip install {PACKAGE}=={VERSION}), or let --install-peer make an environment.",
        ) from error
    return Peer(python, json.loads(done.stdout))


def peer_directory() -> Path:
    """Return the folder in the user's cache where `install_peer` makes its environment."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "crowdveil" / f"{PACKAGE}-{VERSION}"


def install_peer(home: Path) -> Peer:
    """Make a virtual environment with crowd-kit by `venv` and `pip`, if it is not there yet; this downloads.

    Raises:
        SettingsError: the folder cannot be written, or pip could not install.
    """
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    try:
        return find_peer(python)
    except SettingsError:
        pass
    try:
        venv.create(home, with_pip=True, clear=True)
        wanted = [f"{PACKAGE}=={VERSION}"]
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = (error.stderr or "") if isinstance(error, subprocess.CalledProcessError) else str(error)
        raise SettingsError(
            f"pip must be able to install {PACKAGE}=={VERSION}",
            value=str(home),
            hint=f"{said.strip()[-300:]} Or give --peer-python.",
        ) from error
    return find_peer(python)

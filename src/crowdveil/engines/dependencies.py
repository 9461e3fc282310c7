"""Checks before a cluster is used: packages that are not always installed, and versions on the other side."""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Any

from crowdveil.errors import EngineError


def wanted(package: str, extra: str) -> Any:
    """Return a package.

    Raises:
        EngineError: it is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise EngineError(
            f"The engine {extra} needs the package {package}, which is not installed",
            hint=f'Install it: pip install "crowdveil[{extra}]".',
        ) from error


def check_versions(found: Mapping[str, Any]) -> None:
    """Check that workers run this version of crowdveil.

    Args:
        found: version by worker, or the exception that came instead.

    Raises:
        EngineError: some do not.
    """
    here = version("crowdveil")
    wrong = {worker: there for worker, there in found.items() if there != here}
    if wrong:
        worker, there = next(iter(wrong.items()))
        what = "none" if isinstance(there, Exception) else there
        raise EngineError(
            f"All workers must have crowdveil {here}, {len(wrong)} of {len(found)} have not: {worker} has {what}",
            hint="Install the same version everywhere.",
        )

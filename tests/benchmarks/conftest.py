"""A peer for tests: a program that behaves as a Python with crowd-kit in it, made of this one and of a few lines."""

import sys
from pathlib import Path

import pytest

PROGRAM = """#!{python}
import runpy, sys
sys.path.insert(0, {folder!r})
assert sys.argv[1] == "-I"
if sys.argv[2] == "-c":
    exec(sys.argv[3])
else:
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
CROWD_KIT = """
import pandas


class MajorityVote:
    def fit_predict(self, table):
        return table.groupby("task")["label"].agg(lambda labels: labels.mode().iloc[-1])


class DawidSkene:
    def __init__(self, n_iter=100, tol=1e-5):
        pass


OneCoinDawidSkene = DawidSkene
"""


@pytest.fixture(scope="session")
def peer_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that finds a crowd-kit 9.9 which takes the last of the most frequent labels."""
    folder = tmp_path_factory.mktemp("peer")
    (folder / "crowdkit").mkdir()
    (folder / "crowdkit" / "__init__.py").touch()
    (folder / "crowdkit" / "aggregation.py").write_text(CROWD_KIT, encoding="utf-8")
    (folder / "crowd_kit-9.9.dist-info").mkdir()
    (folder / "crowd_kit-9.9.dist-info" / "METADATA").write_text("Name: crowd-kit\nVersion: 9.9\n", encoding="utf-8")
    (folder / "bin").mkdir()
    python = folder / "bin" / "python"
    python.write_text(PROGRAM.format(python=sys.executable, folder=str(folder)), encoding="utf-8")
    python.chmod(0o755)
    return python

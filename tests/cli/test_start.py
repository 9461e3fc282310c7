"""Modules that a command loads, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps([name for name in sys.modules if sys.modules[name]])))
from crowdveil.cli import start
start()
"""
SPARED = {
    "narwhals",
    "pandas",
    "matplotlib",
    "jinja2",
    "crowdveil.mechanisms",
    "crowdveil.simulate",
    "crowdveil.channel_design",
    "numba",
}


@pytest.mark.slow
def test_infer_loads_only_what_it_needs(folder: Path) -> None:
    """A cold `infer` of a CSV file loads no narwhals, pandas, mechanisms, simulations or compiler."""
    words = ["infer", "labels.csv", "--json"]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, check=True, text=True)

    assert set() == SPARED & set(json.loads(done.stdout.splitlines()[-1]))
    assert Path("truths.csv").exists()


HEAVY = {"numpy", "scipy", "pyarrow", "numba", "matplotlib", "narwhals", "jinja2", "rich"}


def test_help_loads_no_numerical_library() -> None:
    """`crowdveil --help`, `--version` and the help of a command start without any of the heavy libraries."""
    for words in (["--help"], ["--version"], ["infer", "--help"]):
        done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, check=True, text=True)

        assert set() == HEAVY & set(json.loads(done.stdout.splitlines()[-1]))

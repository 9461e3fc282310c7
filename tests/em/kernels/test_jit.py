"""Just-in-time compilation: the decision by size, environment and address space; the disk cache."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crowdveil.em.kernels import jit
from crowdveil.em.kernels.jit import KERNELS_VARIABLE, should_compile
from crowdveil.errors import SettingsError

PROGRAM = """
import sys
from numba.core.caching import CacheImpl
if sys.argv[1] == "read-only":
    CacheImpl._locator_classes = []
import numpy as np
from crowdveil.em.kernels.numba_loops.layout import count_symbols
counts = np.zeros(6)
count_symbols(np.array([0, 1, 1]), np.array([2, 1, 1]), 2, counts)
print(counts.tolist(), count_symbols.stats.cache_path is not None)
"""


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return a function that simulates a limit of the address space, of which 1,000 pages are used."""
    resource = pytest.importorskip("resource")
    monkeypatch.delenv(KERNELS_VARIABLE, raising=False)
    (tmp_path / "statm").write_text("1000 10 10 1 0 10 0\n")
    monkeypatch.setattr(jit, "STATM", tmp_path / "statm")
    return lambda size: monkeypatch.setattr(resource, "getrlimit", lambda _: (size, size))


def run_program(tmp_path: Path, folder: str) -> str:
    """Return the counts of a fresh interpreter with an empty cache folder, and whether its code has a cache path."""
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM, folder], capture_output=True, text=True, env=environment)
    assert "" == done.stderr
    return done.stdout.strip()


def test_size_decides_unless_the_environment_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work below the threshold is not compiled, larger work is; `plain` and `compiled` override the size."""
    monkeypatch.delenv(KERNELS_VARIABLE, raising=False)
    assert [False, True] == [should_compile(size, 10) for size in (9, 10)]
    monkeypatch.setenv(KERNELS_VARIABLE, "plain")
    assert not should_compile(10**9, 10)
    monkeypatch.setenv(KERNELS_VARIABLE, "compiled")
    assert should_compile(1, 10)


def test_an_unknown_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names an unknown value of the environment variable."""
    monkeypatch.setenv(KERNELS_VARIABLE, "fast")

    with pytest.raises(SettingsError, match="'fast'"):
        should_compile(1, 10)


def test_free_address_space_is_the_limit_less_what_is_mapped(limit: Any) -> None:
    """Mapped pages are subtracted from the limit; the result is never negative, and None without a limit."""
    resource = pytest.importorskip("resource")
    used = 1000 * resource.getpagesize()
    found = []
    for size in (used + 5, used - 5, resource.RLIM_INFINITY):
        limit(size)
        found.append(jit.free_address_space())

    assert [5, 0, None] == found


def test_nothing_is_compiled_without_space_for_the_compiler(limit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a tight limit large work is not compiled, unless the environment demands it."""
    resource = pytest.importorskip("resource")
    found = []
    for size in (resource.RLIM_INFINITY, 1 << 40, 1 << 30):
        limit(size)
        found.append(should_compile(10, 5))
    monkeypatch.setenv(KERNELS_VARIABLE, "compiled")

    assert [True, True, False] == found
    assert should_compile(10, 5)


@pytest.mark.slow
def test_compiled_code_is_cached_where_a_folder_can_be_written(tmp_path: Path) -> None:
    """The cache folder holds compiled code afterwards."""
    assert "[0.0, 0.0, 1.0, 2.0, 0.0, 0.0] True" == run_program(tmp_path, "writable")
    assert [] != list(tmp_path.rglob("*.nbc"))


@pytest.mark.slow
def test_compiled_code_runs_where_no_folder_can_be_written(tmp_path: Path) -> None:
    """Without a cache folder the same counts come from code that is compiled anew."""
    assert "[0.0, 0.0, 1.0, 2.0, 0.0, 0.0] False" == run_program(tmp_path, "read-only")
    assert [] == list(tmp_path.rglob("*.nbc"))

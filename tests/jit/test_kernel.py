"""Compiled functions are cached on disk where that is possible, and work where it is not."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from numba.core.caching import CacheImpl
if sys.argv[1] == "read-only":
    CacheImpl._locator_classes = []
import numpy as np
from crowdveil.em.kernels.numba_loops.confusion import count_cells
counts = np.zeros(6)
count_cells(np.array([0, 1, 1], np.int32), np.array([2, 0, 0], np.int32), np.int64(3), counts)
print(counts.tolist(), count_cells.stats.cache_path is not None)
"""


def counted(tmp_path: Path, folder: str) -> str:
    """Return what a fresh interpreter counts with an empty cache folder, and whether it has a place for its code."""
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM, folder], capture_output=True, text=True, env=environment)
    assert "" == done.stderr
    return done.stdout.strip()


def test_compiled_code_is_kept_where_a_folder_can_be_written(tmp_path: Path) -> None:
    """Compiled code lies in the cache folder afterwards."""
    assert "[0.0, 0.0, 1.0, 2.0, 0.0, 0.0] True" == counted(tmp_path, "writable")
    assert [] != list(tmp_path.rglob("*.nbc"))


def test_compiled_code_runs_where_no_folder_can_be_written(tmp_path: Path) -> None:
    """Without any place for a cache the same numbers come from code that is compiled anew."""
    assert "[0.0, 0.0, 1.0, 2.0, 0.0, 0.0] False" == counted(tmp_path, "read-only")
    assert [] == list(tmp_path.rglob("*.nbc"))

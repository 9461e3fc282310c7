"""Memory of `infer` on a folder under a limit: it must not follow the tasks, wherever a column might be held whole."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crowdveil.labels import Categories
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd_folder

STATUS = Path("/proc/self/status")
SMALL, LARGE = 1_050_000, 2_400_000
MOST_PER_TASK = 9.5
"""Private bytes for each further task: counts of reports take four, chance two or three, whole columns ten or more."""
MOST_GROWTH = int(MOST_PER_TASK * (LARGE - SMALL))
TRIES = 3
PROGRAM = """
import sys
import crowdveil.estimators.kernels.choice as choice
from crowdveil.cli import main
choice.BLOCK_REPORTS = 1 << 17
main(sys.argv[1:])
"""


def peak_bytes(*words: str) -> int:
    """Return the most private memory of a command, in small blocks and plain code: RssAnon, read every millisecond."""
    settings = {**os.environ, "CROWDVEIL_KERNELS": "plain", "OPENBLAS_NUM_THREADS": "1"}
    command = subprocess.Popen([sys.executable, "-c", PROGRAM, *words], stdout=subprocess.DEVNULL, env=settings)
    most = 0
    while command.poll() is None:
        lines = Path(f"/proc/{command.pid}/status").read_text().splitlines()
        most = max(most, *(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon")), 0)
        time.sleep(0.001)
    assert 0 == command.returncode
    return most


@pytest.mark.skipif(
    not STATUS.is_file() or "RssAnon" not in STATUS.read_text(), reason="only Linux tells private memory"
)
def test_private_memory_does_not_follow_the_tasks(tmp_path) -> None:
    """With 2.3 times the tasks, infer needs less than ten bytes more for each in one of three tries, for the allocator
    is a matter of chance: no column of names, truths, posteriors, pointers or codes is ever held whole."""
    labels, folders = Categories(("no", "yes")), (str(tmp_path / "small"), str(tmp_path / "large"))
    for folder, tasks in zip(folders, (SMALL, LARGE), strict=True):
        categorical_crowd_folder(folder, workers=500, tasks=tasks, labels=labels, sparsity=0.996, source=seeded(1))
    settings = ("--method", "one-coin", "--max-steps", "2", "--memory", "30MB", "--format", "parquet")
    growths: list[int] = []
    while len(growths) < TRIES and min(growths, default=MOST_GROWTH) >= MOST_GROWTH:
        small, large = (peak_bytes("infer", folder, *settings) for folder in folders)
        growths.append(large - small)

    assert min(growths) < MOST_GROWTH, [f"{growth:,}" for growth in growths]

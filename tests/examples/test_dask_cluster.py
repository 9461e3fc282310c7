"""Example of a Dask cluster: it starts, gives the same bits, and leaves no process behind."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed (crowdveil[dask])")
from examples.dask_cluster import dask_cluster

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).parents[2] / "examples" / "dask_cluster.py"


def test_the_example_runs() -> None:
    """A scheduler and two workers, each a process, infer the truths with the same bits as one process."""
    done = subprocess.run([sys.executable, PROGRAM, "--answers", "20000"], capture_output=True, text=True, check=True)

    assert "20,000 answers; 3 processes, the scheduler at tcp://127.0.0.1:" in done.stdout
    assert "The same bits." == done.stdout.splitlines()[-1]


def test_no_process_is_left() -> None:
    """Scheduler and workers end with the cluster, also after an error."""
    started = list[subprocess.Popen[bytes]]()

    def fail_in_a_cluster() -> None:
        with dask_cluster(2) as (address, processes):
            started.extend(processes)
            assert [None] * 3 == [process.poll() for process in processes]
            raise KeyError(address)

    with pytest.raises(KeyError, match="tcp://"):
        fail_in_a_cluster()

    assert None not in [process.poll() for process in started]

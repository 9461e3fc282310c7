"""Limits that a person meets: numbers that cannot be squared, and memory that does not suffice."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

resource = pytest.importorskip("resource")
MEGABYTE = 1_000_000
NATIVE_DEATHS = (-signal.SIGABRT, -signal.SIGSEGV, 127)
"""Exit codes where a compiled library, or one of its threads, gets no memory; no program can catch this."""
OPENBLAS = "OpenBLAS error: Memory allocation still failed after 10 retries, giving up.\n"
"""Line of a compiled library that gets no memory and ends the process with code 1."""


def limited(megabytes: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in so much address space."""
    size = megabytes * MEGABYTE
    return subprocess.run(
        [sys.executable, "-m", "crowdveil", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )


@pytest.fixture
def many(folder: Path) -> Path:
    """Return a file of 400,000 reports."""
    path = folder / "many.csv"
    path.write_text("task,worker,label\n" + "".join(f"t{k // 10},w{k % 997},{'xyz'[k % 3]}\n" for k in range(400_000)))
    return path


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="the address space is known on Linux only")
@pytest.mark.parametrize("megabytes", [150, 250, 350, 500, 600, 700, 900, 1500])
def test_a_tight_address_space_ends_in_one_line(megabytes: int, many: Path) -> None:
    """A command works with enough, is refused in one line with too little, and between them leaves no half a result."""
    done = limited(megabytes, "infer", str(many), "--duplicates", "all", "--out", "out")
    refused = "Error: the work must fit into memory, but the operating system reported: "
    refusal = done.stderr.startswith(refused) and len(done.stderr.splitlines()) == 1
    native = done.returncode in NATIVE_DEATHS or done.stderr == OPENBLAS

    assert (done.returncode, done.stderr) == (0, "") or (done.returncode == 1 and refusal) or native, done.stderr
    assert "Traceback" not in done.stderr
    assert (done.returncode == 0) == Path("out/truths.csv").exists()
    assert done.returncode == 0 or megabytes < 1500
    assert refusal or megabytes > 400


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="the address space is known on Linux only")
def test_a_lack_of_memory_is_an_error_in_json(many: Path) -> None:
    """With --json the refusal is an object with rule, value found and hint."""
    done = limited(150, "infer", str(many), "--out", "out", "--json")
    error = json.loads(done.stdout)["error"]

    assert ("MemoryShortageError", "the work must fit into memory") == (error["type"], error["rule"])
    assert "bytes of address space are left" in error["value"]
    assert "ulimit -v" in error["hint"]

"""Limits that a person meets: numbers that cannot be squared, and memory that does not suffice."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

resource = pytest.importorskip("resource")
MEGABYTE = 1_000_000
NATIVE_DEATHS = (-signal.SIGABRT, -signal.SIGSEGV, 127)
"""Exit codes where a compiled library, or one of its threads, gets no memory; no program can catch this."""
OPENBLAS = "OpenBLAS error: Memory allocation still failed after 10 retries, giving up.\n"
"""Line of a compiled library that gets no memory and ends the process with code 1."""


@pytest.mark.parametrize("value", ["1e160", "-3e200", "1e-170"])
def test_numbers_that_cannot_be_squared_are_refused(value: str, refusal: Callable[..., str], folder: Path) -> None:
    """A huge or tiny value ends in one line that names row, value and way out, as reports, answers and gold."""
    (folder / "huge.csv").write_text(f"task,worker,value\na,v,1\na,w,2\nb,v,{value}\n")
    (folder / "gold.csv").write_text(f"task,truth\n1,{value}\n")
    out = ("--out", "out")
    perturb = ("perturb", "huge.csv", "--mechanism", "laplace", "--epsilon", 1, "--scale", "0:9", "--seed", 1, *out)

    for line in (refusal("infer", "huge.csv", *out), refusal(*perturb)):
        assert "huge.csv, line 4: values must be 0, or between 1e-100 and 1e+100 in size" in line
        assert f"Found: '{value}'. Choose another unit" in line
    assert "gold.csv, line 2: values must be 0" in refusal("infer", "numbers.csv", "--score", "gold.csv", *out)


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

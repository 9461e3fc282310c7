"""Comparison of programs: each fit in its own process, in rounds, on synthetic crowds of growing size."""

import json
import math
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import gettempdir

import numpy as np
from benchmarks.crowd_kit.peer import Peer
from benchmarks.crowd_kit.results import OURS, PEER, PLAIN, Comparison, Measurement, Result, Skipped, reading_seconds
from benchmarks.crowd_kit.synthetic_crowd import write_crowd

from crowdveil.errors import SettingsError
from crowdveil.files.filesystem import temporary_folder

PROGRAM = Path(__file__).parent / "one_fit.py"
METHODS = ("majority-vote", "dawid-skene", "one-coin", "default", "converged")
"""Methods that both programs implement; "default" and "converged" are `aggregate` without a method and by dawid-skene,
from frame to frame, and the peer's DawidSkene, each with its own default settings until it stops by itself."""
WITHOUT_STEPS = ("majority-vote", "default", "converged")
SMALLEST, LARGEST = 1000, 200_000_000
Progress = Callable[[int, int], None]
"""Called after every fit with the number of finished fits and the largest possible number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Settings of a comparison.

    Attributes:
        methods: some of `METHODS`.
        sizes: numbers of answers, ascending.
        rounds: fits of each program, in turn.
        steps: updates after the majority vote.
        patience: seconds; a program is skipped if its next fit should take longer, in proportion to its last one.
        peer: interpreter with crowd-kit; None measures without it.
    """

    methods: tuple[str, ...] = ("dawid-skene", "one-coin")
    sizes: tuple[int, ...] = (10_000, 100_000)
    rounds: int = 3
    steps: int = 20
    patience: float = 60.0
    peer: Peer | None = None

    def __post_init__(self) -> None:
        """Raise SettingsError where a setting breaks its rule."""
        if not self.methods or not set(self.methods) <= set(METHODS):
            raise SettingsError(f"methods must be some of {', '.join(METHODS)}", value=self.methods)
        if not self.sizes or not all(SMALLEST <= size <= LARGEST for size in self.sizes):
            raise SettingsError(f"sizes must lie between {SMALLEST:,} and {LARGEST:,} answers", value=self.sizes)
        if list(self.sizes) != sorted(set(self.sizes)):
            raise SettingsError("sizes must ascend", value=self.sizes)
        if self.rounds < 1 or self.steps < 1 or not self.patience > 0:
            given = (self.rounds, self.steps, self.patience)
            raise SettingsError("rounds, steps and patience must be positive", value=given)

    @property
    def programs(self) -> tuple[str, ...]:
        """Programs in the order of a round."""
        return (OURS, PLAIN, *((PEER,) if self.peer is not None else ()))

    @property
    def most_fits(self) -> int:
        """Number of fits if none is skipped."""
        return len(self.methods) * len(self.sizes) * self.rounds * len(self.programs)


class _Run:
    """State of a running comparison: results so far, and progress."""

    def __init__(self, setup: Setup, progress: Progress | None) -> None:
        self.setup, self.progress = setup, progress
        self.results: list[Result] = []
        self.skipped: list[Skipped] = []
        self.bandwidths: list[float] = []
        self.done = 0

    def table(self, folder: Path, size: int) -> None:
        """Run all methods on one table, and measure the memory bandwidth."""
        write_crowd(folder, size)
        self.bandwidths.append(_run_program(sys.executable, "bandwidth")["gigabytes_per_second"])
        for method in self.setup.methods:
            absent = {
                program: why for program in self.setup.programs if (why := self._reason_to_skip(method, program, size))
            }
            if OURS in absent:
                absent = dict.fromkeys(self.setup.programs, absent[OURS])
            self.skipped += [
                Skipped(method=method, program=program, answers=size, reason=why) for program, why in absent.items()
            ]
            self._advance_quote_state(len(absent) * self.setup.rounds)
            running = [program for program in self.setup.programs if program not in absent]
            self.results += self._fits(method, running, folder, size)

    def _reason_to_skip(self, method: str, program: str, size: int) -> str | None:
        """Return the reason to skip a program on the next table, extrapolated from its last result; None to run it."""
        last = next((one for one in reversed(self.results) if (one.method, one.program) == (method, program)), None)
        if last is None:
            return None
        growth = size / last.answers
        seconds, megabytes, free = last.processor * growth, last.memory * growth, _free_megabytes()
        if seconds > self.setup.patience:
            return f"about {seconds:.0f} s for a fit, more than the patience of {self.setup.patience:g} s"
        return f"about {megabytes:,.0f} MB, of which {free:,.0f} are free" if megabytes > free else None

    def _fits(self, method: str, programs: list[str], folder: Path, answers: int) -> Iterator[Result]:
        rounds: dict[str, list[Measurement]] = {program: [] for program in programs}
        for _ in range(self.setup.rounds):
            for program in programs:
                rounds[program].append(Measurement(**self._fit(program, method, folder)))
                self._advance_quote_state(1)
        labels = {program: np.load(folder / f"{program}.npy") for program in programs}
        steps = 0 if method in WITHOUT_STEPS else self.setup.steps
        for program, measurements in rounds.items():
            pairs = list(zip(measurements, rounds[OURS], strict=True))
            processor = statistics.median(one.processor for one in measurements)
            yield Result(
                method=method,
                program=program,
                answers=answers,
                steps=steps,
                rounds=tuple(measurements),
                wall_ratio=statistics.median(one.wall / own.wall for one, own in pairs),
                processor_ratio=statistics.median(one.processor / own.processor for one, own in pairs),
                equal_labels=float(np.mean(labels[program] == labels[OURS])),
                roofline_share=reading_seconds(answers, steps, self.bandwidths[-1]) / processor,
            )

    def _fit(self, program: str, method: str, folder: Path) -> dict[str, float]:
        python = sys.executable if program != PEER or self.setup.peer is None else str(self.setup.peer.python)
        return _run_program(python, program, method, str(self.setup.steps), str(folder), str(folder / f"{program}.npy"))

    def _advance_quote_state(self, fits: int) -> None:
        self.done += fits
        if self.progress is not None:
            self.progress(self.done, self.setup.most_fits)


def compare(setup: Setup, progress: Progress | None = None) -> Comparison:
    """Return the results of all programs on all tables.

    Raises:
        SettingsError: a fit failed.
    """
    running, before = _Run(setup, progress), _load()
    for size in setup.sizes:
        with temporary_folder(Path(gettempdir())) as folder:
            running.table(folder, size)
    return Comparison(
        results=tuple(running.results),
        skipped=tuple(running.skipped),
        bandwidth=statistics.median(running.bandwidths),
        machine={"processor": _processor(), "cores": os.cpu_count(), "load_before": before, "load_after": _load()},
        versions=_versions(setup.peer),
    )


def _run_program(python: str, program: str, *words: str) -> dict[str, float]:
    """Run one program and return the JSON it printed; the peer runs isolated, without crowdveil on its path."""
    start = [python, "-I" if program == PEER else "-P", str(PROGRAM), program, *words]
    done = subprocess.run(start, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise SettingsError("every fit must end", value=(program, *words[:1]), hint=f"It said: {last}")
    return json.loads(done.stdout.splitlines()[-1])


def _versions(peer: Peer | None) -> dict[str, str | None]:
    own = {"python": platform.python_version(), "numpy": np.__version__, "numba": version("numba")}
    return {OURS: version(OURS), PEER: None if peer is None else peer.version, **own}


def _processor() -> str:
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _load() -> float | None:
    return round(os.getloadavg()[0], 2) if "getloadavg" in dir(os) else None


def _free_megabytes() -> float:
    """Return the free memory in MB, infinity where the system does not report it."""
    about = Path("/proc/meminfo")
    lines = about.read_text().splitlines() if about.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("MemAvailable")), math.inf)

"""Results of the benchmark as values, JSON and a Markdown table."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

OURS, PLAIN, PEER = "crowdveil", "numpy", "crowd-kit"
"""crowdveil with compiled kernels, crowdveil with numpy kernels, and the peer."""
HEADINGS = (
    "method",
    "answers",
    "program",
    "wall s",
    "processor s",
    "times crowdveil's: wall",
    "processor",
    "MB",
    "equal labels",
    "share of bandwidth",
)
CODE_BYTES = 4
"""Bytes of one answer in the compiled loops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One fit in a process of its own.

    Attributes:
        wall, processor: seconds of the fit; processor time counts all threads.
        first: seconds of loading code and fitting a few rows before it.
        memory: most MB held beyond the table.
        peak: most MB of the process.
    """

    wall: float
    processor: float
    first: float
    memory: float
    peak: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One program with one method on one table: medians over the rounds.

    Attributes:
        method, program: by name.
        answers: rows of the table.
        steps: updates after the majority vote; 0 for the majority vote itself.
        rounds: the fits, one a round.
        wall_ratio, processor_ratio: medians of this program's time over crowdveil's of the same round.
        equal_labels: share of tasks that get crowdveil's label.
        roofline_share: time to read all codes once a step at the memory bandwidth, over the processor time.
    """

    method: str
    program: str
    answers: int
    steps: int
    rounds: tuple[Measurement, ...]
    wall_ratio: float
    processor_ratio: float
    equal_labels: float
    roofline_share: float

    @property
    def wall(self) -> float:
        """Median seconds."""
        return statistics.median(one.wall for one in self.rounds)

    @property
    def processor(self) -> float:
        """Median processor seconds."""
        return statistics.median(one.processor for one in self.rounds)

    @property
    def memory(self) -> float:
        """Most MB beyond the table, of any round."""
        return max(one.memory for one in self.rounds)

    @property
    def peak(self) -> float:
        """Most MB of any round's process."""
        return max(one.peak for one in self.rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Program that was not run on a table, with the reason."""

    method: str
    program: str
    answers: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A whole run.

    Attributes:
        results: measurements in order.
        skipped: programs that were not run.
        bandwidth: memory bandwidth of one thread in GB/s, median over the run.
        machine: processor, cores, and the load when the run began and when it ended.
        versions: of crowdveil, the peer (None without one), numba, numpy and Python.
    """

    results: tuple[Result, ...]
    skipped: tuple[Skipped, ...]
    bandwidth: float
    machine: dict[str, Any]
    versions: dict[str, str | None]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values: the rounds with their medians."""
        medians = ("wall", "processor", "memory", "peak")
        results = [asdict(line) | {name: getattr(line, name) for name in medians} for line in self.results]
        skipped = [asdict(one) for one in self.skipped]
        about = {"machine": self.machine, "versions": self.versions, "roof_gigabytes_per_second": self.bandwidth}
        return about | {"results": results, "skipped": skipped}


def reading_seconds(answers: int, steps: int, bandwidth: float) -> float:
    """Return the seconds in which one thread reads all codes once for the votes and once a step, in GB/s."""
    return CODE_BYTES * answers * (steps + 1) / (bandwidth * 1e9)


def cells(line: Result) -> tuple[str, ...]:
    """Return the cells of a row under `HEADINGS`."""
    return (
        line.method + (f", {line.steps} steps" if line.steps else ""),
        f"{line.answers:,}",
        line.program,
        f"{line.wall:.3g}",
        f"{line.processor:.3g}",
        f"{line.wall_ratio:.3g}",
        f"{line.processor_ratio:.3g}",
        f"{line.memory:,.0f}",
        f"{line.equal_labels:.2%}",
        f"{line.roofline_share:.2%}",
    )


def markdown(lines: Sequence[Result]) -> str:
    """Return the lines as a Markdown table."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *map(cells, lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"

"""Results of a benchmark, as values, as JSON and as a table for documents."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

OURS, PLAIN, PEER = "crowdveil", "numpy", "crowd-kit"
"""crowdveil as it is, crowdveil on its plain kernels, and the peer."""
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
    "share of roof",
)
CODE_BYTES = 4
"""Of an answer, as the compiled loops read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
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
class Line:
    """One program with one method on one table: medians over the rounds.

    Attributes:
        method, program: by name.
        answers: rows of the table.
        steps: updates after the majority vote; 0 for the majority vote itself.
        rounds: the fits, one a round.
        wall_ratio, processor_ratio: medians of this program's time over crowdveil's of the same round.
        equal_labels: share of tasks that get crowdveil's label.
        share_of_roof: the time that reading all codes once a step takes at the roof, over the processor time.
    """

    method: str
    program: str
    answers: int
    steps: int
    rounds: tuple[Took, ...]
    wall_ratio: float
    processor_ratio: float
    equal_labels: float
    share_of_roof: float

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
class LeftOut:
    """A program that was not run on a table, and why."""

    method: str
    program: str
    answers: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A whole run.

    Attributes:
        lines: what was measured, in order.
        left_out: what was not.
        roof: GB that one thread reads in a second, median over the run.
        machine: processor, cores, and the load when the run began and when it ended.
        versions: of crowdveil, the peer (None without one), numba, numpy and Python.
    """

    lines: tuple[Line, ...]
    left_out: tuple[LeftOut, ...]
    roof: float
    machine: dict[str, Any]
    versions: dict[str, str | None]

    def to_json(self) -> dict[str, Any]:
        """Return everything for a program, medians beside the rounds."""
        medians = ("wall", "processor", "memory", "peak")
        lines = [asdict(line) | {name: getattr(line, name) for name in medians} for line in self.lines]
        left_out = [asdict(one) for one in self.left_out]
        about = {"machine": self.machine, "versions": self.versions, "roof_gigabytes_per_second": self.roof}
        return about | {"lines": lines, "left_out": left_out}


def roof_seconds(answers: int, steps: int, roof: float) -> float:
    """Return how long one thread reads the codes of all answers, once for the votes and once a step, at `roof` GB/s."""
    return CODE_BYTES * answers * (steps + 1) / (roof * 1e9)


def cells(line: Line) -> tuple[str, ...]:
    """Return what stands under the `HEADINGS`."""
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
        f"{line.share_of_roof:.2%}",
    )


def markdown(lines: Sequence[Line]) -> str:
    """Return the lines as a Markdown table."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *map(cells, lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"

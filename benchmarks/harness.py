"""Benchmark harness: contenders run in turn in one process, with medians of ratios over rounds, and peak memory.

Ratios within one round are less noisy than times. Peak memory is that of a separate process. Processor time counts all
threads; on a shared machine its ratio is more stable than that of wall time.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

Contender = Callable[[], object]


class Measurement(NamedTuple):
    """Wall and processor seconds of a contender in one round, and their ratios to the peer."""

    wall: float
    processor: float
    wall_ratio: float
    processor_ratio: float


def compare(contenders: Mapping[str, Contender], *, rounds: int, peer: str) -> dict[str, list[Measurement]]:
    """Return measurements by contender: run in turn, once to warm up and then `rounds` times."""
    for contender in contenders.values():
        contender()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            start = time.perf_counter(), time.process_time()
            contender()
            times[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return {
        name: [
            Measurement(*mine, mine[0] / its[0], mine[1] / its[1]) for mine, its in zip(own, times[peer], strict=True)
        ]
        for name, own in times.items()
    }


def peak_megabytes(words: Sequence[str]) -> float:
    """Return the peak memory in megabytes of a new process, which runs one contender and prints it."""
    run = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    return float(run.stdout.split()[-1])


def print_own_peak() -> None:
    """Print the peak memory of this process in megabytes; mapped files count as far as they were read."""
    lines = Path("/proc/self/status").read_text().splitlines()
    print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000)


def table(results: Mapping[str, Sequence[Measurement]], peaks: Mapping[str, float]) -> str:
    """Return medians as a Markdown table."""
    lines = ["| contender | wall s | processor s | times the peer: wall | processor | peak MB |", "| --- " * 6 + "|"]
    for name, rounds in results.items():
        cells = [statistics.median(column) for column in zip(*rounds, strict=True)]
        lines.append(f"| {name} | " + " | ".join(f"{cell:.3g}" for cell in cells) + f" | {peaks[name]:,.0f} |")
    return "\n".join(lines)

"""The frame of all benchmarks: contenders in turn in one process, several rounds, medians of ratios, peak memory.

A machine is noisy; a ratio of two neighbours in one round is much less so. Peak memory is that of a process of its own.
Processor time counts all threads: on a machine that others use too, its ratio is the steadier one.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

Contender = Callable[[], object]


class Took(NamedTuple):
    """Of one contender in one round: wall and processor seconds, and both over the peer's."""

    wall: float
    processor: float
    wall_ratio: float
    processor_ratio: float


def compare(contenders: Mapping[str, Contender], *, rounds: int, peer: str) -> dict[str, list[Took]]:
    """Run all contenders in turn, once to warm up and then `rounds` times; the peer is one of them."""
    for contender in contenders.values():
        contender()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            start = time.perf_counter(), time.process_time()
            contender()
            times[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return {
        name: [Took(*mine, mine[0] / its[0], mine[1] / its[1]) for mine, its in zip(own, times[peer], strict=True)]
        for name, own in times.items()
    }


def peak_megabytes(words: Sequence[str]) -> float:
    """Run this benchmark again for one contender, which prints its own peak; return it in megabytes."""
    run = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    return float(run.stdout.split()[-1])


def print_own_peak() -> None:
    """Print the largest memory that this process has held, in megabytes; mapped files count where they were read."""
    lines = Path("/proc/self/status").read_text().splitlines()
    print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000)


def table(results: Mapping[str, Sequence[Took]], peaks: Mapping[str, float]) -> str:
    """Return medians as a Markdown table."""
    lines = ["| what | wall s | processor s | times the peer: wall | processor | peak MB |", "| --- " * 6 + "|"]
    for name, rounds in results.items():
        cells = [statistics.median(column) for column in zip(*rounds, strict=True)]
        lines.append(f"| {name} | " + " | ".join(f"{cell:.3g}" for cell in cells) + f" | {peaks[name]:,.0f} |")
    return "\n".join(lines)

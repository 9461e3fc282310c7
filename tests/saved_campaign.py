"""Fits of a saved campaign by every method: posteriors, steps, log-likelihoods, to compare two versions bit for bit.

`python tests/saved_campaign.py --write before.json` with one version, `--compare before.json` with another, on the same
machine. `--large` adds a crowd of 300,000 reports, which compiled code reads in several blocks.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil import (
    Categories,
    Channel,
    DawidSkene,
    Gaussian,
    MajorityVote,
    OneCoin,
    OrdinalDawidSkene,
    Reports,
    Scale,
    WeightedMean,
)
from crowdveil.answers.facts.asked import LISTED
from crowdveil.estimators import WeightedVote
from crowdveil.published import PrivateDawidSkene

CAMPAIGN = Path(__file__).parent / "cases" / "campaign"
LABEL_METHODS = (MajorityVote, WeightedVote, DawidSkene, OneCoin, PrivateDawidSkene)
ORDERED_METHODS = (OrdinalDawidSkene, DawidSkene)
NUMBER_METHODS = (WeightedMean, Gaussian)
WITHOUT_CHANNEL = (WeightedVote, WeightedMean)
Fits = dict[str, dict[str, Any]]


def cases() -> Iterator[tuple[str, Any, Reports, Channel | None]]:
    """Yield name, method, reports and channel of every fit of the saved campaign."""
    for stem, methods in (("labels", LABEL_METHODS), ("grades", ORDERED_METHODS), ("numbers", NUMBER_METHODS)):
        channel = Channel.from_certificate((CAMPAIGN / f"{stem}.json").read_text("utf-8"))
        read = Reports.from_csv(CAMPAIGN / f"{stem}.csv", alphabet=channel.report_alphabet, grid="exact")
        reports = read.with_asked(LISTED)
        for method in methods:
            yield f"{stem} {method.name}", method(), reports, None
            if method not in WITHOUT_CHANNEL:
                yield f"{stem} {method.name} channel", method(), reports, channel


def large_cases() -> Iterator[tuple[str, Any, Reports, Channel | None]]:
    """Yield fits of simulated crowds of 300,000 reports: labels, ordered labels and numbers."""
    rng = np.random.default_rng(7)
    task, worker = rng.permutation(600_000)[:300_000] % 30_000, rng.integers(0, 2_000, 300_000)
    truth = rng.integers(0, 4, 30_000)
    label = np.where(rng.random(300_000) < 0.6, truth[task], rng.integers(0, 4, 300_000))
    alphabet, scale = Categories(("0", "1", "2", "3"), ordered=True), Scale(0, 3)
    labels = Reports.from_arrays(task, worker, label.astype(str), alphabet=alphabet, duplicates="all")
    numbers = Reports.from_arrays(task, worker, label.astype(float), alphabet=scale, numeric=True, duplicates="all")
    for method in (*LABEL_METHODS, OrdinalDawidSkene):
        yield f"large labels {method.name}", method(max_steps=20), labels, None
    for number_method in NUMBER_METHODS:
        yield f"large numbers {number_method.name}", number_method(max_steps=20), numbers, None


def fits(large: bool) -> Fits:
    """Return digest and mean square of the posterior, steps and log-likelihoods (hexadecimal), by name of the fit."""
    found = {}
    for name, method, reports, channel in (*cases(), *(large_cases() if large else ())):
        gold = {task: truth_of(reports, place) for place, task in enumerate(reports.tasks) if place % 5 == 0}
        for words, known in (("", None), (" gold", gold)):
            if large and name.startswith("large") and known:
                continue
            estimate = method.fit(reports, channel=channel, gold=known)
            posterior = np.ascontiguousarray(estimate.posterior)
            found[name + words] = {
                "posterior": hashlib.sha256(posterior.tobytes()).hexdigest(),
                "squares": float(np.mean(posterior**2)),
                "steps": estimate.steps,
                "log_likelihoods": [float(value).hex() for value in estimate.log_likelihoods],
            }
    return found


def truth_of(reports: Reports, place: int) -> Any:
    """Return a label (or a number) that the known truth of a task is taken to be, by the task's position."""
    assert reports.alphabet is not None
    return reports.alphabet.names[place % reports.alphabet.size]


def main() -> int:
    """Write the fits, or compare them with written ones; 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    found = fits(given.large)
    if given.write:
        given.write.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    before = json.loads(given.compare.read_text("utf-8")) if given.compare else found
    different = sorted(name for name in before.keys() | found.keys() if before.get(name) != found.get(name))
    print(f"{len(found)} fits, {len(different)} differ", *different, sep="\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

"""What would be enough for truths that cannot be used: stated where it is known, and enough when it is carried out."""

import re
from pathlib import Path

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.data.reports import Reports
from crowdveil.folder.evidence import Evidence
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.release.what_is_enough import AS_ASSUMED, what_is_enough
from crowdveil.simulate.perturbation import perturb

LABELS, POINTS = Categories(("no", "yes")), Scale(0, 10)


def evidence(alphabet: Categories | Scale, *, workers: int, tasks: int = 12, epsilon: float | None = 1.0) -> Evidence:
    """Return reports of every worker on every task, through randomized response of an epsilon."""
    task, worker = (part.ravel().astype(np.int32) for part in np.mgrid[:tasks, :workers])
    value = np.random.default_rng(1).integers(0, alphabet.size, len(task)).astype(np.int16)
    names = np.arange(tasks).astype(str), np.arange(workers).astype(str)
    reports, channel = Reports(task, worker, value, *names, alphabet), None
    if epsilon is not None:
        mechanism = RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation="protected")
        reports, channel = perturb(reports, mechanism, seeded(2)), mechanism.channel()
    return Evidence(reports=reports, crowd=None, channel=channel, certificate=None, no_channel_reason="")


@pytest.mark.parametrize("alphabet", [LABELS, POINTS], ids=["labels", "scale"])
def test_what_is_named_is_enough(alphabet: Categories | Scale) -> None:
    """With the named workers or epsilon, workers as assumed are enough; with somewhat fewer they are not."""
    said = what_is_enough(evidence(alphabet, workers=10, epsilon=0.5), 0.5)
    workers, epsilon = re.findall(r"about ([\d,]+) workers in place of 10, or epsilon ([\d.]+) per answer", said)[0]

    assert AS_ASSUMED == what_is_enough(evidence(alphabet, workers=int(workers.replace(",", "")), epsilon=0.5), 0.5)
    assert AS_ASSUMED == what_is_enough(evidence(alphabet, workers=10, epsilon=float(epsilon)), 0.5)
    assert "enough would be" in what_is_enough(evidence(alphabet, workers=15, epsilon=0.5), 0.5)


def test_answers_without_a_channel_need_workers() -> None:
    """Epsilon is not named where no noise was added; few workers with little skill may never be enough."""
    said = what_is_enough(evidence(LABELS, workers=1, epsilon=None), 0.1)

    assert re.fullmatch(r".*enough would be: about \d+ workers in place of 1\.", said)
    assert "Even 100 times as many workers" in what_is_enough(evidence(LABELS, workers=1, epsilon=0.001), 0.1)


def test_without_reports_or_labels_nothing_is_named() -> None:
    """Reports that are not given, and numbers without a scale, have no such sentence."""
    numbers = Reports(*np.zeros((2, 1), np.int32), np.ones(1), np.array(["t"]), np.array(["w"]))

    assert "" == what_is_enough(None, 0.5)
    assert "" == what_is_enough(
        Evidence(reports=numbers, crowd=None, channel=None, certificate=None, no_channel_reason=""), 0.5
    )


@pytest.mark.slow
def test_results_that_say_nothing_begin_with_it(numbers: Path) -> None:
    """The first sentence of a page of intervals as wide as the scale says so, and what would be enough."""
    from tests.release.conftest import command

    command("perturb", numbers.parent / "answers.csv", "--mechanism", "laplace", "--epsilon", 0.1, "--scale", "-2:7",
            "--tasks", numbers.parent / "tasks.csv", "--workers", numbers.parent / "workers.csv",
            "--out", numbers.parent / "noisy")  # fmt: skip
    command("infer", numbers.parent / "noisy" / "reports.csv")
    command("report", numbers.parent / "noisy")
    page = (numbers.parent / "noisy" / "report.html").read_text("utf-8")

    assert 'class="conclusion not-enough"' in page
    first = page[page.index("<p>These answers are not enough: at epsilon") :].partition("</p>")[0]
    assert "enough would be: " in first
    assert "not estimable from these reports" in page
    assert not re.search(r"alpha \(\w+\) is -?\d{2}", page)

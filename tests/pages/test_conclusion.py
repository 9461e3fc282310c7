"""The first sentences of results, and what would be enough."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.facts.asked import Asked
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.guarantee import Guarantee
from crowdveil.em.estimate import Estimate, WorkerTable
from crowdveil.em.gold import CrossValidation
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.pages.conclusion import (
    ALL_GOLD,
    AS_ASSUMED,
    AS_GOOD,
    CHECK,
    GUIDED,
    MORE_WRONG,
    NO_DIFFERENCES,
    NO_INTERVALS,
    NO_NUMBERS,
    NO_PROBABILITIES,
    UNCHECKED,
    UNDECIDED,
    assess_truths,
    sufficiency_sentence,
)
from crowdveil.pages.results_page import code_as_html
from crowdveil.privacy.statement import PrivacyStatement
from crowdveil.randomness import seeded
from crowdveil.simulate.perturbation import perturb_reports
from tests.inferred_folders import Folder, command, write_results

UNPROTECTED = PrivacyStatement(status="none")


def labelled(*posterior: tuple[float, float], **fields: object) -> Estimate:
    """Return truths over the labels no and yes with this posterior."""
    return estimated(np.array(posterior), alphabet=Categories(("no", "yes")), **fields)


def numeric(numbers: list[float], half_width: float | None) -> Estimate:
    """Return numbers with intervals of this half width."""
    truth = np.array(numbers)
    low, high = (None, None) if half_width is None else (truth - half_width, truth + half_width)
    return estimated(truth, low=low, high=high)


def estimated(posterior: NDArray[np.float64], **fields: object) -> Estimate:
    """Return an estimate of one worker."""
    names, one, count = {"alphabet": None, "tasks": np.arange(len(posterior))}, np.ones(1), len(posterior)
    sizes = {"reports_per_task": np.full(count, 2), "reports_per_worker": np.ones(1, np.int64)}
    workers = {"worker_names": np.array(["w"]), "workers": WorkerTable(one, "ability")}
    return Estimate(method="test", posterior=posterior, **(names | sizes | workers | fields))


@pytest.mark.parametrize(
    ("result", "advice"),
    [
        (labelled((0.9, 0.1), (0.1, 0.9)), "Use these truths: 10.0 % are expected to be wrong, against 50"),
        (labelled((0.7, 0.3), (0.3, 0.7)), "Use these truths with care: 30.0 %"),
        (labelled((0.54, 0.46), (0.46, 0.54)), "These answers are not enough: 46.0 %"),
        (labelled((0.99, 0.01), (0.99, 0.01)), "Use these truths with care: 1.0 % are expected to be wrong"),
        (labelled(*[(0.98, 0.02)] * 9, (0.02, 0.98)), "Use these truths: 2.0 % are expected to be wrong, against 11"),
        (numeric([0, 10], 4.0), "Use these truths: the median 90 % interval is ± 4"),
        (numeric([0, 10], 7.0), "Use these truths with care"),
        (numeric([0, 10], 12.0), "These answers are not enough"),
        (numeric([3, 3], 1.0), "These answers are not enough"),
    ],
)  # fmt: skip
def test_advice_follows_from_the_error(result: Estimate, advice: str) -> None:
    """The error as a share of the constant's decides; a small one is never called too little."""
    assert advice in assess_truths(result, UNPROTECTED).sentences[0]


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (labelled((1.0, 0.0), (0.0, 1.0), probabilistic=False), NO_PROBABILITIES),
        (numeric([1.0, 2.0], None), NO_INTERVALS),
        (numeric([np.nan, np.nan], 1.0), NO_NUMBERS),
        (numeric([1.0, 2.0], np.nan), NO_DIFFERENCES),
    ],
)
def test_an_unknown_error_gives_no_advice(result: Estimate, sentence: str) -> None:
    """Without probabilities, intervals or numbers the conclusion says so, and nothing else."""
    assert ("unknown", (sentence,)) == assess_truths(result, UNPROTECTED)


def test_a_constant_that_is_as_good_is_named() -> None:
    """Where one label for every task has no larger error, the conclusion says so."""
    assert AS_GOOD in assess_truths(labelled((0.99, 0.01), (0.99, 0.01)), UNPROTECTED).sentences
    assert AS_GOOD not in assess_truths(labelled((0.99, 0.01), (0.01, 0.99)), UNPROTECTED).sentences


def test_doubtful_truths_are_counted() -> None:
    """Truths below 90 % are counted; if there is none, the conclusion says so."""
    assert (
        "1 truth has a confidence below 90 %"
        in assess_truths(labelled((0.95, 0.05), (0.2, 0.8)), UNPROTECTED).sentences[1]
    )
    assert "Every truth has" in assess_truths(labelled((0.95, 0.05), (0.1, 0.9)), UNPROTECTED).sentences[1]


def test_the_privacy_of_the_reports_comes_first() -> None:
    """Epsilon and participation begin the conclusion of protected reports; a simulation has none."""
    protected = PrivacyStatement(status="protected", per_answer=Guarantee(epsilon=1.00001, participation="public"))
    result = labelled((0.9, 0.1), (0.1, 0.9))
    first = {
        status: assess_truths(result, PrivacyStatement(status=status)).sentences[0] for status in ("simulation", "none")
    }

    assert (
        assess_truths(result, protected)
        .sentences[0]
        .startswith("Use these truths: at epsilon 1.001 per answer (participation public) 10.0 %")
    )
    assert first["simulation"].startswith("Use these truths: in this simulation, which has no privacy, 10.0 %")
    assert first["none"].startswith("Use these truths: 10.0 %")


def test_page_and_command_have_the_conclusion(collected: Folder) -> None:
    """The first section of the page and the printed lines have the same sentences."""
    folder = collected()
    conclusion = write_results(folder).sentences
    page = (folder / "report.html").read_text("utf-8")
    printed = " ".join(command("report", folder).split())

    first = page[page.index("<h2") : page.index("</section>")]
    assert 'id="conclusion"' in first
    for sentence in conclusion:
        assert code_as_html(sentence) in first
        assert sentence.split(",")[0] in printed.replace(" conclusion ", " ")


GOLD = labelled((0.95, 0.05), (0.4, 0.6), (1.0, 0.0), (0.0, 1.0), gold=np.array([False, False, True, True]))
"""Two tasks without gold: 1 - (0.95 + 0.6) / 2 = 22.5 % wrong; with `no` for both 1 - (0.95 + 0.4) / 2 = 32.5 %."""


def test_gold_is_no_evidence_of_itself() -> None:
    """Expected errors and doubtful truths are those of the tasks without gold; nobody is asked to compare gold."""
    sentences = assess_truths(GOLD, UNPROTECTED).sentences

    assert sentences[0] == (
        "Use these truths with care: 22.5 % of the 2 tasks without gold are expected to be wrong, against 32.5 % with "
        "'no' for every task."
    )
    assert "1 truth has a confidence below 90 %" in sentences[1]
    assert (GUIDED.format("2 tasks", "are"), UNCHECKED) == sentences[-2:]
    assert CHECK not in sentences


@pytest.mark.parametrize(
    ("random", "meaning"),
    [(True, "so this estimates"), (False, "the others may differ"), (None, "only if gold was drawn at random")],
)
def test_a_cross_validated_accuracy_is_an_estimate_for_random_gold_only(random: bool | None, meaning: str) -> None:
    """The accuracy on gold stands in the conclusion with what it says of the other tasks."""
    check = CrossValidation(tasks=20, right=16, right_without_gold=15, random=random)
    last = assess_truths(replace(GOLD, cross_validation=check), UNPROTECTED).sentences[-1]

    assert last.startswith("Cross-validated accuracy on 20 gold tasks: 0.800 (0.750 without gold). ")
    assert meaning in last


@pytest.mark.parametrize(("random", "right", "verdict"), [(None, 5, "care"), (False, 5, "use"), (True, 19, "use")])
def test_more_errors_on_gold_than_expected_change_the_advice(random: bool | None, right: int, verdict: str) -> None:
    """15 of 20 wrong gold tasks do not go with 1 % expected errors, unless gold is unlike the other tasks."""
    sure = [(0.99, 0.01), (0.01, 0.99)] * 50
    gold = np.arange(len(sure)) < 20
    check = CrossValidation(tasks=20, right=right, random=random)
    found = assess_truths(labelled(*sure, gold=gold, cross_validation=check), UNPROTECTED)

    assert (MORE_WRONG in found.sentences) == (verdict != "use")
    assert (found.verdict == "use") == (verdict == "use")


def test_nothing_is_concluded_where_every_truth_was_known() -> None:
    """With gold of all tasks there is no advice."""
    every = labelled((1.0, 0.0), (0.0, 1.0), gold=np.ones(2, dtype=bool))

    assert ("unknown", (ALL_GOLD,)) == assess_truths(every, UNPROTECTED)


def test_unknown_numbers_and_tasks_without_reports_are_counted() -> None:
    """Tasks without a number, and truths without a report, do not hide among the others."""
    some = numeric([0.0, 10.0, np.nan], 4.0)
    unasked = labelled((0.9, 0.1), (0.1, 0.9), (0.6, 0.4), reports_per_task=np.array([3, 2, 0]))

    assert "1 of 3 tasks have no number" in assess_truths(some, UNPROTECTED).sentences[1]
    assert "1 task has no reports" in assess_truths(unasked, UNPROTECTED).sentences[1]


def test_undecided_tasks_are_counted_apart() -> None:
    """Only decided truths are concluded on; without any there is no advice to use them."""
    some = labelled((0.99, 0.01), (0.6, 0.4), undecided=np.array([False, True]))
    none = labelled((0.99, 0.01), (0.6, 0.4), undecided=np.array([True, True]))

    advice, undecided, confident, *_ = assess_truths(some, UNPROTECTED).sentences

    assert "1.0 % are expected to be wrong" in advice
    assert "1 of 2 tasks stay undecided and are not counted as wrong." == undecided
    assert "Every truth has a confidence of at least 90 %." == confident
    assert ("unknown", (UNDECIDED,)) == assess_truths(none, UNPROTECTED)


@pytest.mark.parametrize(
    ("reports", "verdict"), [((2, 2, 0, 0), "not enough"), ((1, 1, 1, 0), "not enough"), ((2, 1, 1, 0), "use")]
)
def test_tasks_without_reports_are_never_enough(reports: tuple[int, ...], verdict: str) -> None:
    """Half of the tasks without a report, or fewer reports than tasks, are no ground for truths, however sure."""
    posterior = [(0.99, 0.01), (0.01, 0.99)] * 2
    categories = assess_truths(labelled(*posterior, reports_per_task=np.array(reports)), UNPROTECTED)
    numbers = numeric([0.0, 10.0, 0.0, 10.0], 1.0)
    found = assess_truths(replace(numbers, reports_per_task=np.array(reports)), UNPROTECTED)

    assert (verdict, verdict) == (categories.verdict, found.verdict)
    named = f"{sum(reports)} reports on 4 tasks, {reports.count(0)} without any; 1.0 % are expected to be wrong"
    assert (named in categories.sentences[0]) == (verdict != "use")


def test_answers_that_no_other_answer_can_be_compared_with_are_used_with_care() -> None:
    """Where every task has one report, how sure its truth is comes from the model alone."""
    once = np.ones(2, np.int64)
    found = [
        assess_truths(labelled((0.99, 0.01), (0.01, 0.99), reports_per_task=once), UNPROTECTED),
        assess_truths(replace(numeric([0.0, 10.0], 1.0), reports_per_task=once), UNPROTECTED),
    ]

    assert ["care", "care"] == [conclusion.verdict for conclusion in found]
    assert all("no task has two reports" in conclusion.sentences[0] for conclusion in found)


LABELS, POINTS = Categories(("no", "yes")), Scale(0, 10)


def evidence(alphabet: Categories | Scale, *, workers: int, tasks: int = 12, epsilon: float | None = 1.0) -> Evidence:
    """Return reports of every worker on every task, through randomized response of an epsilon."""
    task, worker = (part.ravel().astype(np.int32) for part in np.mgrid[:tasks, :workers])
    value = np.random.default_rng(1).integers(0, alphabet.size, len(task)).astype(np.int16)
    names = np.arange(tasks).astype(str), np.arange(workers).astype(str)
    reports, channel = Reports(task, worker, value, *names, alphabet), None
    if epsilon is not None:
        mechanism = RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation="protected")
        reports, channel = perturb_reports(reports, mechanism, seeded(2)), mechanism.channel()
    return Evidence(observed=reports, channel=channel, asked=Asked(complete=True))


@pytest.mark.parametrize("alphabet", [LABELS, POINTS], ids=["labels", "scale"])
def test_what_is_named_is_enough(alphabet: Categories | Scale) -> None:
    """With the named workers or epsilon, workers as assumed are enough; with somewhat fewer they are not."""
    said = sufficiency_sentence(evidence(alphabet, workers=10, epsilon=0.5), 0.5)
    workers, epsilon = re.findall(r"about ([\d,]+) workers instead of 10, or epsilon ([\d.]+) per answer", said)[0]

    assert AS_ASSUMED == sufficiency_sentence(
        evidence(alphabet, workers=int(workers.replace(",", "")), epsilon=0.5), 0.5
    )
    assert AS_ASSUMED == sufficiency_sentence(evidence(alphabet, workers=10, epsilon=float(epsilon)), 0.5)
    assert "this would be enough" in sufficiency_sentence(evidence(alphabet, workers=15, epsilon=0.5), 0.5)


def test_answers_without_a_channel_need_workers() -> None:
    """Epsilon is not named where no noise was added; few workers with little skill may never be enough."""
    said = sufficiency_sentence(evidence(LABELS, workers=1, epsilon=None), 0.1)

    assert re.fullmatch(r".*this would be enough: about \d+ workers instead of 1\.", said)
    assert "Even 100 times as many workers" in sufficiency_sentence(evidence(LABELS, workers=1, epsilon=0.001), 0.1)


def test_without_reports_or_labels_nothing_is_named() -> None:
    """Reports that are not given, and numbers without a scale, have no such sentence."""
    numbers = Reports([0], [0], [1.0], np.array(["t"]), np.array(["w"]))

    assert "" == sufficiency_sentence(None, 0.5)
    assert "" == sufficiency_sentence(Evidence(observed=numbers), 0.5)


@pytest.mark.slow
def test_results_that_say_nothing_begin_with_it(numbers: Path) -> None:
    """The first sentence of a page of intervals as wide as the scale says so, and what would be enough."""
    from tests.inferred_folders import command

    command("perturb", numbers.parent / "answers.csv", "--mechanism", "laplace", "--epsilon", 0.1, "--scale", "-2:7",
            "--tasks", numbers.parent / "tasks.csv", "--workers", numbers.parent / "workers.csv",
            "--out", numbers.parent / "noisy")  # fmt: skip
    command("infer", numbers.parent / "noisy" / "reports.csv")
    command("report", numbers.parent / "noisy")
    page = (numbers.parent / "noisy" / "report.html").read_text("utf-8")

    assert 'class="conclusion not-enough"' in page
    first = page[page.index("<p>These answers are not enough: at epsilon") :].partition("</p>")[0]
    assert "this would be enough: " in first
    assert "not estimable from these reports" in page
    assert not re.search(r"alpha \(\w+\) is -?\d{2}", page)

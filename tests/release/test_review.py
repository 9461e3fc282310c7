"""The page of results names agreement, unsure tasks and workers to review, and states nothing without a basis."""

import re
from pathlib import Path

import pytest

from crowdveil.data.reports import Reports
from crowdveil.evaluation.agreement import Agreement, Interval, agreement
from crowdveil.release.review import _pairwise_sentence
from tests.release.conftest import Folder, command, write_results

LABELS = Path(__file__).parent.parent.parent / "docs" / "samples" / "labels.csv"


def review_of(folder: Path, reports: Path | None, **text: object) -> list[str]:
    """Return the sentences of the section."""
    write_results(folder, reports, **text)
    page = (folder / "report.html").read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")
    section = re.search(r'<section aria-labelledby="review">.*?</section>', page, re.DOTALL)
    return [] if section is None else re.findall(r"<li>(.*?)</li>", section[0])


@pytest.fixture
def found(tmp_path: Path) -> Path:
    """Results of the sample of labels."""
    command("infer", LABELS, "--out", tmp_path / "found")
    return tmp_path / "found"


def test_agreement_is_that_of_the_answers(found: Path) -> None:
    """With the answers the page has their alpha; without them it has tasks and workers only."""
    alpha = agreement(Reports.from_csv(LABELS)).alphas["nominal"]
    with_answers, without = review_of(found, LABELS), review_of(found, None)

    assert f"is {alpha.value:.2f} (90 % interval {alpha.low:.2f} to {alpha.high:.2f})" in with_answers[0]
    assert with_answers[3:] == without[1:]
    assert with_answers[2].startswith(without[0].removesuffix("."))
    assert "crowdveil next" in with_answers[2]


def test_workers_are_named_only_on_request(found: Path) -> None:
    """The sentence on workers counts them, and names them only with workers."""
    silent, named = review_of(found, None)[-1], review_of(found, None, with_workers=True)[-1]

    assert re.match(r"\d of 5 workers have an ability below", silent)
    assert ":" not in silent
    assert len(silent) < len(named)


def test_agreement_behind_a_channel_is_corrected(collected: Folder) -> None:
    """Protected reports have a corrected alpha, named as such."""
    folder = collected()

    assert "corrected for the noise of the channel" in review_of(folder, None)[0]


def test_a_difference_that_no_two_answers_have_is_not_estimable() -> None:
    """Corrected for noise, the mean difference of two numbers can exceed the scale; then it is not stated."""
    known = Agreement(
        alphas={},
        pairwise=Interval(11.7, 9.0, 14.0),
        pairwise_name="difference",
        tasks=4,
        answers=9,
        single=0,
        channel_used=True,
        workers=None,
    )

    assert "is 11.70 (90 % interval 9.00 to 14.00)." in _pairwise_sentence(known, 12.0)
    assert _pairwise_sentence(known, 10.0).endswith("is not estimable from these reports.")

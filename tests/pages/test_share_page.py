"""Tests of the page of shares."""

from html.parser import HTMLParser
from typing import Any

import pytest

import crowdveil as cv
from crowdveil.channels.guarantee import Guarantee
from crowdveil.errors import SettingsError
from crowdveil.pages.share_page import lead_sentences, share_page
from crowdveil.privacy.statement import PrivacyStatement

PLAIN = PrivacyStatement(status="none", reason="The answers were read as they are.")
PEOPLE = [f"p{number}" for number in range(100)]


def plain_shares(task: str = "cheated") -> cv.Shares:
    """Return the shares of 100 people, 30 of whom say yes, with two groups."""
    answers = {"task": [task] * 100, "worker": PEOPLE, "label": ["yes"] * 30 + ["no"] * 70}
    return cv.share(answers, by={"worker": PEOPLE, "year": ["first"] * 50 + ["later"] * 50})


class Texts(HTMLParser):
    """Texts of a page, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        self.texts.append(data)


def test_the_first_sentence_is_that_of_a_board() -> None:
    """The page begins with interval, level and epsilon of the first question; a share is never called a truth."""
    answer = Guarantee(epsilon=1.0, unit="cell", participation="protected")
    stated = PrivacyStatement(status="protected", mechanism="randomized-response", per_answer=answer)

    assert lead_sentences(plain_shares(), stated) == [
        "Between 21.9 % and 39.6 % of those who answer say 'yes' to 'cheated' (100 people asked), at level 95 %; "
        "epsilon 1 per answer, participation protected."
    ]


def test_without_a_checked_guarantee_no_epsilon_is_stated() -> None:
    """Plain answers and simulations have no epsilon on the page."""
    simulated = PrivacyStatement(status="simulation", reason="The reports follow from a seed.")

    assert "no privacy guarantee is stated" in lead_sentences(plain_shares(), PLAIN)[0]
    assert "simulation only, no privacy" in lead_sentences(plain_shares(), simulated)[0]


def test_bars_of_everyone_and_of_groups() -> None:
    """There is a bar with an interval for everyone and for each group, and the test of no difference."""
    page = share_page(plain_shares(), PLAIN, title="A survey")
    texts = "\n".join(Texts(page).texts)

    assert page.count('class="whisker"') == 3
    assert "yes\n, by \nyear" in texts
    assert "p < 0.001 for the hypothesis that all groups have the same share" in texts
    assert "Groups of people are taken to be public" in texts
    assert "truth: " not in texts


def test_names_on_the_page_are_escaped() -> None:
    """A name of a task is text, whatever it holds."""
    page = share_page(plain_shares("<script>alert(1)</script>"), PLAIN)

    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def two_labels(labels: tuple[str, str]) -> cv.Shares:
    """Return the shares of 100 people, 30 of whom say the second of two labels."""
    answers = {"task": ["q"] * 100, "worker": PEOPLE, "label": [labels[1]] * 30 + [labels[0]] * 70}
    return cv.share(answers, alphabet=cv.Categories(labels))


def test_the_order_of_the_labels_decides_what_is_read_first() -> None:
    """Of two labels the second as they were given is read first, whatever it says; `lead` states another one."""
    for labels in (("no", "yes"), ("yes", "no"), ("ja", "nein")):
        assert (
            f"Between 21.9 % and 39.6 % of those who answer say '{labels[1]}'"
            in lead_sentences(two_labels(labels), PLAIN)[0]
        )
    assert "say 'yes' to" in lead_sentences(two_labels(("yes", "no")), PLAIN, "yes")[0]
    page = share_page(two_labels(("yes", "no")), PLAIN, lead="yes")
    assert "70.0" in page
    assert "30.0" not in page


def test_a_lead_that_is_no_label_is_refused() -> None:
    """The refusal has all labels, and the argument."""
    with pytest.raises(SettingsError, match=r"read first is one of the answers, got 'maybe'. Labels are no, yes"):
        share_page(two_labels(("no", "yes")), PLAIN, lead="maybe")


def survey_of_parties() -> cv.Shares:
    """Return the shares of seven labels, by four groups."""
    labels = [f"party {number}" for number in range(7)]
    answers = {"task": ["vote"] * 280, "worker": [*range(280)], "label": labels * 40}
    return cv.share(answers, by={worker: f"region {worker // 70}" for worker in range(280)})


def test_many_labels_and_groups() -> None:
    """Of more labels than two each has a sentence, at most five; the lead alone has one, and the first bar."""
    shares = survey_of_parties()
    page = share_page(shares, PLAIN, lead="party 4")

    assert ["2 further shares below."] == lead_sentences(shares, PLAIN)[5:]
    assert 1 == len(lead_sentences(shares, PLAIN, "party 4"))
    assert Texts(page).texts.index("party 4") < Texts(page).texts.index("party 0")
    assert "<summary>42 differences of two groups</summary>" in page


def test_a_question_without_an_answer_has_a_sentence() -> None:
    """The page says that nothing is known, and draws the whole interval."""
    reports = cv.Reports.from_arrays(["a"] * 4, [1, 2, 3, 4], ["no", "yes", "yes", "yes"], tasks=["a", "b"])
    page = share_page(cv.share(reports), PLAIN)

    assert "The reports do not tell what share of those who answer say &#39;yes&#39; to &#39;b&#39;" in page
    assert "not determined (0.0 to 100.0)" in page


def test_words_from_right_to_left_do_not_move_numbers() -> None:
    """Names of others stand apart in sentences, so that the sign of a difference stays before its number."""
    arabic = "\u0627\u0644\u0642\u0627\u0647\u0631\u0629"
    answers = {"task": ["q"] * 100, "worker": PEOPLE, "label": ["yes"] * 30 + ["no"] * 70}
    page = share_page(cv.share(answers, by={"worker": PEOPLE, "city": ["Bonn", arabic] * 50}), PLAIN)

    assert f"minus \u2068&#39;{arabic}&#39;\u2069: " in page
    assert f'<bdi class="foreign">{arabic}</bdi>' in page


def test_totals_are_named_in_the_first_sentence() -> None:
    """A share weighted to known totals says of whom it is."""
    answers = {"task": ["q"] * 100, "worker": PEOPLE, "label": ["yes"] * 30 + ["no"] * 70}
    found = cv.share(answers, by={"worker": PEOPLE, "year": ["a", "b"] * 50}, totals={"a": 10, "b": 30})
    (sentence,) = lead_sentences(found, PLAIN)

    assert "of all people of the population, if in each group those without an answer would answer like" in sentence
    assert "With the totals, shares of everyone are of all people of the population" in share_page(found, PLAIN)


def test_the_certificate_is_on_the_page() -> None:
    """A reader finds the digest of the certificate that the statement was checked against."""
    answer = Guarantee(epsilon=1.0, unit="cell", participation="protected")
    stated = PrivacyStatement(
        status="protected", mechanism="randomized-response", per_answer=answer, certificate_sha256="ab" * 32
    )

    assert "ab" * 32 in share_page(plain_shares(), stated)


def test_a_page_of_many_questions_says_where_it_ends() -> None:
    """Of more questions than fit, the page has the first ones and says so."""
    answers = {"task": [f"q{k:02}" for k in range(60)] * 2, "worker": [*"a" * 60, *"b" * 60]}
    page = share_page(cv.share(answers | {"label": ["no"] * 60 + ["yes"] * 60}), PLAIN)

    assert "The page has the first 50 of 60 questions; the table has all." in page
    assert 50 == page.count('<h2 id="task-')


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"clusters": {name: name[:2] for name in PEOPLE}}, "Clusters of people are taken to be public"),
        ({"weights": dict.fromkeys(PEOPLE, 2)}, "Weights of people are taken to be public"),
        (
            {"by": {"worker": PEOPLE, "year": ["a", "b"] * 50}, "totals": {"a": 10, "b": 30}},
            "Groups and totals of people are taken to be public",
        ),
        ({}, ""),
    ],
)
def test_the_page_names_what_was_taken_to_be_public(given: dict[str, Any], named: str) -> None:
    """Groups, weights, totals and clusters are named, since the statement of privacy does not cover them."""
    answers = {"task": ["q"] * 100, "worker": PEOPLE, "label": ["yes"] * 30 + ["no"] * 70}
    page = share_page(cv.share(answers, **given), PLAIN)

    assert named in page
    assert bool(named) == ("taken to be public" in page)


def test_pooled_tasks_count_answers() -> None:
    """Of two pooled tasks to each of 100 people the page counts 200 answers asked for, not people."""
    labels = ["yes"] * 30 + ["no"] * 70
    answers = {"task": ["a"] * 100 + ["b"] * 100, "worker": PEOPLE * 2, "label": labels * 2}
    found = cv.share(answers, pooled=True)
    page = share_page(found, PLAIN)

    assert "of the answers say 'yes' to 'all tasks' (200 answers asked for)" in lead_sentences(found, PLAIN)[0]
    assert "200 answers asked for. 200 answers." in page
    assert "200 people" not in page

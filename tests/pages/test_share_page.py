"""Tests of the page of shares."""

from html.parser import HTMLParser

import crowdveil as cv
from crowdveil.channels.guarantee import Guarantee
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
    assert "yes, by year" in texts
    assert "p < 0.001 for the hypothesis that all groups have the same share" in texts
    assert "Groups and weights of people are taken to be public" in texts
    assert "truth: " not in texts


def test_names_on_the_page_are_escaped() -> None:
    """A name of a task is text, whatever it holds."""
    page = share_page(plain_shares("<script>alert(1)</script>"), PLAIN)

    assert "<script" not in page

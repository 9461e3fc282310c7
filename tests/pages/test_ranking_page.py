"""Tests of the page of a ranking."""

import pytest

import crowdveil as cv
from crowdveil.channels.guarantee import Guarantee
from crowdveil.pages.ranking_page import lead_sentences, ranking_page
from crowdveil.privacy.statement import PrivacyStatement
from tests.pages.test_share_page import Texts

PLAIN = PrivacyStatement(status="none", reason="The answers were read as they are.")


def ranking(items: str = "abcd", more: tuple[str, ...] = ()) -> cv.Ranking:
    """Return the ranking of items of which each is better than the next, by ten workers, and of pairs of `more`."""
    pairs = [(items[one], items[other]) for one in range(len(items)) for other in range(one)] + [more] * bool(more)
    rows = [(left, right, f"w{worker}") for left, right in pairs for worker in range(10)]
    left, right, worker = (list(column) for column in zip(*rows, strict=True))
    return cv.rank({"left": left, "right": right, "worker": worker, "label": ["right"] * len(rows)})


def test_the_first_item_comes_first() -> None:
    """The page begins with the first item and its range, then how many pairs are told apart, with epsilon."""
    answer = Guarantee(epsilon=1.0, unit="cell", participation="public")
    stated = PrivacyStatement(status="protected", mechanism="randomized-response", per_answer=answer)
    found = lead_sentences(ranking(), stated)

    assert found[0].startswith("First of 4 items: 'a', with a rank from 1 to ")
    assert found[1].endswith("of 6 pairs are told apart; epsilon 1 per comparison, participation public.")
    assert "no privacy guarantee is stated" in lead_sentences(ranking(), PLAIN)[1]


def test_items_stand_by_rank_with_intervals() -> None:
    """Items stand by rank, each with its score, range and interval; a picture has the probabilities of all pairs."""
    page = ranking_page(ranking(), PLAIN)
    texts = [text.strip() for text in Texts(page).texts if text.strip()]

    assert page.count('class="whisker"') == 4
    assert [text for text in texts if text in {*"abcd"}][:4] == [*"abcd"]
    assert "a beats d: 100%" in page
    assert page.count('class="cell"') == 16


def test_groups_are_not_compared() -> None:
    """Groups that no comparison connects have sections of their own, and the page says what would connect them."""
    with pytest.warns(UserWarning, match="No comparison connects"):
        found = ranking("abc", ("x", "y"))
    page = ranking_page(found, PLAIN)

    assert "Group 1 of 2, not compared with others" in page
    assert page.count("To connect them, compare") == 1


def test_names_are_escaped() -> None:
    """Names of items that are markup are text on the page, and workers are not named."""
    page = ranking_page(ranking("ab<&"), PLAIN, title="<script>")

    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "<dt>&lt;</dt>" in page
    assert "w3" not in page
    assert "Of 10 workers, " in page


def test_large_groups_are_cut() -> None:
    """Of a group with more than 100 items the first are shown, and no picture of pairs."""
    names = [f"item {number:03}" for number in range(120)]
    left, right = names[:-1], names[1:]
    found = cv.rank({"left": left, "right": right, "worker": ["w"] * 119, "label": ["left"] * 119}, "davidson")
    page = ranking_page(found, PLAIN)

    assert page.count('class="whisker"') == 100
    assert "20 items not shown" in page
    assert 'class="cell"' not in page

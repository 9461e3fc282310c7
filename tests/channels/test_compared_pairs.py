"""Tests of the names of compared pairs."""

import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.channels.compared_pairs import COMPARISON_ANSWERS, Pair, are_comparisons, pair_of_name
from crowdveil.errors import ReportsError


@pytest.mark.parametrize("pair", [Pair("aspen", "birch"), Pair("aspen", "birch", "trees")])
def test_the_name_of_a_pair_is_read_back(pair: Pair) -> None:
    """A pair, with its list or without, is read from its name."""
    assert pair == pair_of_name(pair.name)


@pytest.mark.parametrize("name", ["aspen", "", "a||b", "|a", "a|", "a|b|c|d"])
def test_other_names_are_no_pairs(name: str) -> None:
    """A name without two items is refused, and tasks of such names are no comparisons."""
    with pytest.raises(ReportsError, match="named by its two items"):
        pair_of_name(name)

    assert not are_comparisons(COMPARISON_ANSWERS, ["a|b", name])


def test_comparisons_have_their_own_answers() -> None:
    """Pairs with other labels are no comparisons."""
    assert are_comparisons(COMPARISON_ANSWERS, ["a|b", "trees|a|c"])
    assert not are_comparisons(Categories(("no", "yes")), ["a|b"])

"""Names of sets of labels: short, readable, and never two alike."""

from itertools import combinations

import pytest

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms.quantized_response import block_names

RATINGS = Categories(("G", "P", "R", "X"), ordered=True)
COLOURS = Categories(("red", "green", "blue"))


@pytest.mark.parametrize(
    ("alphabet", "block", "name"),
    [
        (Scale(0, 9), (0,), "0"),
        (Scale(0, 9), (1, 2, 3, 4, 5, 6, 7, 8, 9), "1..9"),
        (Scale(-1, 1, 0.5), (0, 1, 4), "-1..-0.5|1"),
        (Scale(0, 9), (8, 9, 10), "8..9|NULL"),
        (Scale(0, 9), (10,), "NULL"),
        (RATINGS, (0, 2, 3), "G|R..X"),
        (RATINGS, (3, 4), "X|NULL"),
        (COLOURS, (0, 1), "red|green"),
    ],
)
def test_a_block_is_named_by_what_it_holds(alphabet, block, name):
    """One label keeps its name, neighbours of an order are a range, the rest is listed; NULL ends no range."""
    assert (name,) == block_names(alphabet, [block])


def test_labels_in_the_form_of_composed_names_do_not_collide():
    """Every set of labels with dots and bars in them, NULL too, has a name of its own; single labels keep theirs."""
    labels = ("a", "b", "a|b", "a..b", "b|a..b", "a|b|NULL")
    for ordered in (False, True):
        sets = [block for size in range(1, 8) for block in combinations(range(7), size)]

        names = block_names(Categories(labels, ordered), sets)

        assert len(sets) == len(set(names))
        assert (*labels, "NULL") == names[:7]

"""Counts with their nouns."""

import pytest

from crowdveil.presentation.counts import crowd_text, number_of


@pytest.mark.parametrize(("count", "text"), [(0, "0 gold tasks"), (1, "1 gold task"), (2000, "2,000 gold tasks")])
def test_one_thing_is_singular(count: int, text: str) -> None:
    """The noun follows its number, in which thousands are apart."""
    assert text == number_of(count, "gold task")


def test_a_crowd_has_both_nouns() -> None:
    """Workers and tasks are counted apart."""
    assert "1 worker on 12 tasks" == crowd_text(1, 12)

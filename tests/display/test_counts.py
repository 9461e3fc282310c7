"""Counts with their nouns."""

import pytest

from crowdveil.display.counts import crowd_text, number_of, repeated_pairs_text, verb_of


@pytest.mark.parametrize(("count", "text"), [(0, "0 gold tasks"), (1, "1 gold task"), (2000, "2,000 gold tasks")])
def test_one_thing_is_singular(count: int, text: str) -> None:
    """The noun follows its number, in which thousands are apart."""
    assert text == number_of(count, "gold task")


@pytest.mark.parametrize(
    ("part", "whole", "verb"), [(1, None, "has"), (2, None, "have"), (1, 5, "has"), (0, 1, "has"), (0, 5, "have")]
)
def test_one_thing_has_and_others_have(part: int, whole: int | None, verb: str) -> None:
    """The verb is singular of one thing, of one of several, and of a part of one."""
    assert verb == verb_of(part, "has", "have", whole=whole)


@pytest.mark.parametrize(("count", "text"), [(1, "1 row repeats a"), (2000, "2,000 rows repeat a")])
def test_noun_and_verb_of_repeats_agree(count: int, text: str) -> None:
    """Repeated answers are counted in one sentence form."""
    assert f"{text} (task, worker) pair" == repeated_pairs_text(count, "row")


def test_a_crowd_has_both_nouns() -> None:
    """Workers and tasks are counted apart."""
    assert "1 worker on 12 tasks" == crowd_text(1, 12)

"""Numbers in sentences of the documents are read from their page and computed again, to the printed digits."""

import pytest

from tests.docs_numbers.claim import Claim, as_printed, page_text
from tests.docs_numbers.measured import CLAIMS

SAMPLE = Claim("", "has {} and\n{} %.", lambda: (0.84449, 1234.4))


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.page}: {claim.passage[:40]}")
def test_the_page_prints_what_is_computed(claim: Claim) -> None:
    """The passage stands in its page once, and every figure in it is the computed one."""
    assert [] == claim.differences(page_text(claim.page))


@pytest.mark.parametrize(
    ("text", "differences"),
    [
        ("It has .844 and 1,234 %.", []),
        ("It has 0.84\nand 1234 %.", []),
        ("It has 0.845 and 1,234 %.", [("0.845", "0.844")]),
        ("It has 0.84 and 1,235.0 %.", [("1,235.0", "1,234.4")]),
    ],
)
def test_another_figure_is_found(text: str, differences: list[tuple[str, str]]) -> None:
    """A figure that differs in its last printed digit is reported, whatever the form of the number."""
    assert differences == SAMPLE.differences(text)


@pytest.mark.parametrize("text", ["It has .8 and much.", "It has .8 and 1 %. It has .8 and 1 %."])
def test_a_passage_must_stand_once(text: str) -> None:
    """A passage that the page does not have, or has twice, is an error."""
    with pytest.raises(ValueError, match="unpack"):
        SAMPLE.differences(text)


def test_text_stands_as_computed() -> None:
    """A computed text, such as a number rounded up, is not rounded again."""
    assert "4.999996" == as_printed("4.999996", "5.0")

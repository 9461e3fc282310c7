"""Fits of a saved campaign keep their figures; `saved_campaign.py` compares two versions bit for bit on one machine."""

import json

import pytest

from tests.saved_campaign import CAMPAIGN, Fits, fits

pytestmark = pytest.mark.slow

EQUAL_ENDS = {"grades ordinal-dawid-skene"}
"""Fits whose two initializations end at one optimum: rounding decides which of them is the result, and so its steps."""
SAVED: Fits = json.loads((CAMPAIGN / "fits.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def found() -> Fits:
    """Return the fits of the installed version."""
    return fits(large=False)


def test_every_saved_fit_is_made_again(found: Fits) -> None:
    """The same methods fit the same reports."""
    assert SAVED.keys() == found.keys()


@pytest.mark.parametrize("name", SAVED)
def test_a_fit_keeps_its_figures(name: str, found: Fits) -> None:
    """Steps are equal; posterior and log-likelihoods agree up to the rounding of another machine.

    Of a fit with two equal ends only the end is compared.
    """
    saved, now = SAVED[name], found[name]

    likelihoods = [[float.fromhex(text) for text in fit["log_likelihoods"]] for fit in (saved, now)]
    assert saved["squares"] == pytest.approx(now["squares"], rel=1e-6 if name in EQUAL_ENDS else 1e-9)
    assert likelihoods[0][-1:] == pytest.approx(likelihoods[1][-1:], rel=1e-9)
    if name not in EQUAL_ENDS:
        assert saved["steps"] == now["steps"]
        assert likelihoods[0] == pytest.approx(likelihoods[1], rel=1e-9)

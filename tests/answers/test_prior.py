"""A prior has one set of rules, wherever it is given: to a fit, a mechanism or a plan, in a file or in memory."""

from collections.abc import Callable
from pathlib import Path

import pytest

import crowdveil
from crowdveil.answers.facts.prior import Prior
from crowdveil.answers.ingest.column_readers import load_prior
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.design.mechanism_from_settings import Expectation
from crowdveil.errors import CrowdveilError, ReportsError, SettingsError
from crowdveil.estimators import DawidSkene
from crowdveil.inference.infer import infer

LABELS = Categories(("no", "yes"))
VOTES = Reports.from_arrays(["a", "a", "b"], ["u", "v", "u"], ["no", "yes", "no"])
TAKERS: dict[str, Callable[[dict[str, float]], object]] = {
    "fit": lambda prior: DawidSkene().fit(VOTES, prior=prior),
    "infer": lambda prior: infer(VOTES, prior=prior),
    "mechanism": lambda prior: Expectation(prior=Prior.of(prior)).objective(LABELS, "protected"),
    "plan": lambda prior: crowdveil.plan(LABELS, workers=9, tasks=9, participation_rate=1.0, prior=prior),
}
"""Everything that takes a prior, by name."""
BROKEN: dict[str, tuple[dict[str, float], str]] = {
    "zero": ({"no": 1.0, "yes": 0.0}, "prior probabilities must be positive: no report can overrule a prior of 0"),
    "above": ({"no": 1.5, "yes": -0.5}, "prior probabilities must be at most 1"),
    "sum": ({"no": 0.5, "yes": 0.25}, "prior probabilities must sum to 1, not to 0.75"),
    "labels": (
        {"no": 0.5, "maybe": 0.5},
        "the prior must give a probability to each of the labels no, yes and to no other",
    ),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("name", BROKEN)
def test_every_taker_refuses_a_broken_prior_in_the_same_words(taker: str, name: str) -> None:
    """Fit, inference, mechanism and plan refuse the same priors by the same rules."""
    prior, rule = BROKEN[name]

    with pytest.raises(SettingsError) as caught:
        TAKERS[taker](prior)

    assert caught.value.rule == rule


@pytest.mark.parametrize("name", BROKEN)
def test_a_prior_in_a_file_has_the_same_rules_and_names_its_file(name: str, tmp_path: Path) -> None:
    """The words are those of a prior in memory; the file is named."""
    prior, rule = BROKEN[name]
    path = tmp_path / "prior.csv"
    path.write_text("label,probability\n" + "".join(f"{label},{share}\n" for label, share in prior.items()), "utf-8")

    with pytest.raises(ReportsError) as caught:
        load_prior(path).in_label_order(LABELS)

    assert (caught.value.rule, caught.value.source) == (rule, str(path))


@pytest.mark.parametrize("given", [[0.5, 0.5], {"no": "0.5", "yes": 0.5}, {"no": True, "yes": 0.0}])
def test_a_prior_is_a_mapping_to_numbers(given: object) -> None:
    """Lists, texts and truth values are no probabilities by label."""
    with pytest.raises(CrowdveilError, match="prior must be a"):
        Prior.of(given)


def test_a_prior_is_taken_as_it_is() -> None:
    """A fit with a prior value gives the truths of one with its mapping."""
    shares = {"yes": 0.9, "no": 0.1}

    plain, value = (DawidSkene().fit(VOTES, prior=one).posterior.tolist() for one in (shares, Prior.of(shares)))

    assert plain == value

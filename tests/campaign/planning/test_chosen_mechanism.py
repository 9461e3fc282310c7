"""Mechanisms that a plan chooses: those of `crowdveil plan`, over all answers of the campaign, within its lists."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from crowdveil.campaign.planning.chosen_mechanism import mechanism_of_campaign_settings, on_answer_scale
from crowdveil.campaign.planning.creation import create_campaign
from crowdveil.campaign.planning.expected_error import planned_campaign
from crowdveil.campaign.rules.document import Relay
from crowdveil.campaign.settings.build import build_campaign
from crowdveil.campaign.settings.privacy_request import PLAN, PrivacyRequest
from crowdveil.campaign.settings.settings_file import ExpectedCrowd, read_settings
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms import Ogpm, QuantizedResponse, SubsetSelection
from crowdveil.planning.worker_budget import plan_of_worker_budgets
from crowdveil.randomness import seeded
from tests.campaign.planning.test_creation import elsewhere

pytestmark = pytest.mark.slow

BUDGET = PrivacyRequest(mechanism=PLAN, budget_per_worker=5.0)
SAMPLE = read_settings(Path(__file__).parents[3] / "docs" / "samples" / "campaign.toml")
SOURCE = replace(SAMPLE, slots=12, names=SAMPLE.names[:12], excluded=SAMPLE.excluded[:12], per_worker=None)
"""The sample with the twelve authors alone, and a plan of the tasks of each."""


def test_the_choice_is_that_of_the_command():
    """Mechanism and tasks of each worker are those that a plan by budgets chooses for the same crowd."""
    source = replace(SOURCE, excluded=(frozenset(),) * 12)
    planned = plan_of_worker_budgets(planned_campaign(source), (5.0,)).results[0]

    chosen = mechanism_of_campaign_settings(source)
    made = chosen.build(planned.mechanism.epsilon)

    assert planned.mechanism == made
    assert planned.cost.cells == chosen.source.per_worker
    assert chosen.planned


def test_the_same_settings_have_the_same_plan(tmp_path):
    """`plan.json` lies in the folder, names reports and expected error, and does not depend on the drawn assignment."""
    path = tmp_path / "campaign.toml"
    path.write_text(elsewhere(privacy='{ mechanism = "plan", budget_per_worker = 6 }'), "utf-8")

    made = [create_campaign(path, tmp_path / name) for name in ("first", "second")]
    texts = [(one.folder / "plan.json").read_text("utf-8") for one in made]

    assert texts[0] == texts[1]
    assert made[0].campaign.name != made[1].campaign.name
    assert f'"error": {made[0].questions[0].expected.protected.error!r}' in texts[0]
    assert made[0].folder / "plan.json" in made[0].files


@pytest.mark.parametrize(
    "changes",
    [
        {"per_worker": 3},
        {"excluded": (frozenset(range(9)),) + (frozenset(),) * 11},
        {"relay": Relay("The library", "", 5, "cell"), "excluded": (frozenset(),) * 12},
        {"expected": ExpectedCrowd(answered=0.6, sigmas=(1.0,))},
    ],
    ids=["tasks given", "exclusions", "relay", "expected"],
)
def test_a_plan_keeps_what_the_settings_state(changes):
    """Given tasks, exclusions and a relay bind the plan; the certified loss of a worker is within the budget."""
    source = replace(SOURCE, **changes)

    chosen = mechanism_of_campaign_settings(source)
    campaign, parts, _ = build_campaign(chosen.source, seeded(1), build=chosen.build)

    each = chosen.source.per_worker
    assert source.per_worker in (None, each)
    assert source.relay is None or each is None
    assert (each or 12) <= 12 - max(map(len, source.excluded)) or each is None
    assert campaign.worker_epsilon <= 5.0
    assert not any(set(parts[0].tasks(slot)) & source.excluded[slot] for slot in range(12))


@pytest.mark.parametrize("participation", ["protected", "public"])
@pytest.mark.parametrize("privacy", [BUDGET, PrivacyRequest(mechanism=PLAN, epsilon_per_answer=1.0)])
@pytest.mark.parametrize(
    "alphabet",
    [
        Categories(("no", "yes")),
        Categories(("G", "P", "R", "X")),
        Categories(("never", "monthly", "weekly", "daily"), ordered=True),
        Scale(0, 100),
    ],
    ids=["two labels", "labels", "ordered labels", "a long scale"],
)
def test_a_plan_chooses_what_a_campaign_can_ask(alphabet, privacy, participation):
    """Whatever the answers, the choice becomes a campaign over exactly these answers that every check accepts."""
    source = replace(SOURCE, alphabet=alphabet, privacy=privacy, participation=participation)

    chosen = mechanism_of_campaign_settings(source)
    campaign, _, (mechanism,) = build_campaign(chosen.source, seeded(1), build=chosen.build)

    assert alphabet == mechanism.alphabet == campaign.alphabet
    assert participation == campaign.participation
    assert campaign.epsilon <= (privacy.epsilon_per_answer or 5.0)


TEN = replace(
    SOURCE,
    alphabet=Categories(tuple(f"group {k}" for k in range(10))),
    excluded=(frozenset(),) * 12,
    participation="public",
    privacy=PrivacyRequest(mechanism=PLAN, epsilon_per_answer=2.0),
    per_worker=12,
)


def test_a_plan_asks_for_sets_of_labels_where_these_err_less():
    """Of ten labels at epsilon 2 the plan reports pairs; the campaign has one table, and no worker exceeds epsilon."""
    chosen = mechanism_of_campaign_settings(TEN)
    campaign, _, (mechanism,) = build_campaign(chosen.source, seeded(1), build=chosen.build)

    assert isinstance(mechanism, SubsetSelection)
    assert 45 == len(campaign.channels[0].outputs)
    assert campaign.epsilon <= 2.0


@pytest.mark.parametrize("privacy", [TEN.privacy, PrivacyRequest(mechanism=PLAN, budget_per_worker=2.0)])
def test_a_survey_reports_single_labels(privacy):
    """One question to forty people is a survey: its expected interval is that of randomized response."""
    survey = replace(TEN, privacy=privacy, slots=40, names=(), excluded=(frozenset(),) * 40, rows=TEN.rows[:1])
    survey = replace(survey, per_worker=1)

    made = mechanism_of_campaign_settings(survey).device_mechanism

    assert not isinstance(made, SubsetSelection)


def test_sets_of_long_labels_are_not_asked_for():
    """Two labels of 101 signs make a name that no campaign accepts: single labels are asked for."""
    source = replace(TEN, alphabet=Categories(tuple(sign * 101 for sign in "abcdefghij")))

    chosen = mechanism_of_campaign_settings(source)
    _, _, (mechanism,) = build_campaign(chosen.source, seeded(1), build=chosen.build)

    assert not isinstance(mechanism, SubsetSelection)


def test_labels_of_a_long_scale_are_blocks_of_neighbours():
    """A plan on a coarser scale is asked on all labels: every number belongs to the block of its nearest label."""
    source = replace(SOURCE, alphabet=Scale(0, 1000), per_worker=1, privacy=replace(BUDGET, budget_per_worker=40.0))

    made = mechanism_of_campaign_settings(source).build(40.0)

    assert isinstance(made, QuantizedResponse)
    assert 8.0 == made.epsilon
    assert {cut % 50 for cut in made.cuts} == {26}
    assert all(second - first >= 50 for first, second in pairwise((0, *made.cuts)) if first)


@pytest.mark.parametrize(("scale", "kind"), [(Scale(0, 100), Ogpm), (Scale(0, 1000), QuantizedResponse)], ids=str)
def test_a_mechanism_for_numbers_is_used_on_the_answers(scale, kind):
    """Windows of a plan on a coarser scale are those of the answers; a scale that is too long for them has blocks."""
    made = on_answer_scale(Ogpm(alphabet=Scale(0, scale.high, scale.high / 20), epsilon=2.0), scale)

    assert (kind, scale, 2.0) == (type(made), made.alphabet, made.epsilon)


def test_many_answers_of_one_epsilon_are_asked_through_windows():
    """Twelve answers at epsilon 2 to a question without a prior are asked by a mechanism without a designed table."""
    each = PrivacyRequest(mechanism=PLAN, epsilon_per_answer=2.0)
    source = replace(SOURCE, per_worker=None, excluded=(frozenset(),) * 12, privacy=each)

    made = mechanism_of_campaign_settings(source).device_mechanism

    assert made.name in ("ogpm", "square-wave", "randomized-response")
    assert made.alphabet == source.alphabet

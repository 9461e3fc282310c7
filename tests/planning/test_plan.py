"""Recommendations, alternatives, and their sentences."""

import pytest

from crowdveil.errors import SettingsError
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.planning import MAX_WORKERS, Plan, beta_abilities, plan, verdict
from crowdveil.planning.plan import more_workers
from crowdveil.presentation.pictures import svg_file
from tests.planning.campaigns import of_labels, of_numbers

EPSILONS = (0.5, 2.0, 4.0)


@pytest.fixture(scope="module")
def met() -> Plan:
    """A plan whose target is met at epsilon 4 and not below."""
    return plan(of_labels(rate=0.25), target=0.15, epsilons=EPSILONS)


@pytest.fixture(scope="module")
def missed() -> Plan:
    """A plan whose target even the unprotected answers miss."""
    return plan(of_labels(workers=8), target=0.02, epsilons=EPSILONS)


@pytest.mark.slow
def test_the_smallest_epsilon_that_meets_the_target_is_recommended(met: Plan) -> None:
    """No candidate meets the target at a smaller epsilon, or with fewer bytes at this one."""
    found = met.recommended

    assert found is not None
    assert found.epsilon == 4.0
    assert found.prediction.error <= met.target
    assert all(one.prediction.error > met.target for one in met.results if one.epsilon < found.epsilon)
    at = [one for one in met.results if one.epsilon == 4.0 and one.prediction.error <= met.target]
    assert found.cost.bytes == min(one.cost.bytes for one in at)


@pytest.mark.slow
def test_equivalent_candidates_share_a_prediction(met: Plan) -> None:
    """At epsilon 4 blocks and designed channel are randomized response, and their errors are equal."""
    results = {one.name: one for one in met.results if one.epsilon == 4.0}

    assert results["designed"].same_as == "randomized-response"
    assert results["designed"].prediction == results["randomized-response"].prediction


def test_missed_epsilons_need_more_workers(met: Plan) -> None:
    """Smaller epsilons need more workers, and a prediction with that many meets the target."""
    found = [met.workers_needed[epsilon] for epsilon in (0.5, 2.0)]

    assert [0.5, 2.0] == sorted(met.workers_needed)
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].campaign.workers > found[1].campaign.workers > 40
    assert found[1].prediction.error <= met.target


def test_alternatives_have_a_smaller_epsilon(met: Plan) -> None:
    """Public participation and assignment meet the target at smaller epsilons, by simulation."""
    assert {"public", "assignment"} >= {one.change for one in met.alternatives} != set()
    for one in met.alternatives:
        assert one.mechanism is not None
        assert one.mechanism.epsilon < 4.0
        assert one.prediction.error <= met.target
        assert one.prediction.simulated


@pytest.mark.slow
def test_an_impossible_target_is_stated(missed: Plan) -> None:
    """If unprotected answers miss the target, the sentences name the number of workers needed."""
    said = " ".join(verdict(missed))

    assert missed.recommended is None
    assert missed.workers_needed_unprotected is not None
    assert "The target cannot be met: with 8 workers no mechanism of this plan reaches 0.02" in said
    assert f"Without protection it needs about {missed.workers_needed_unprotected.campaign.workers:,} workers" in said
    assert "Not enough by itself at these epsilons: public participation, assigning tasks." in said
    assert f"at epsilon 4 per answer about {missed.workers_needed[4.0].campaign.workers:,}" in said  # type: ignore[union-attr]


def test_guessing_workers_never_reach_a_target() -> None:
    """Workers who guess are not enough in any number."""
    said = " ".join(verdict(plan(of_labels(abilities=(1 / 3,)), target=0.3, epsilons=(2.0,))))

    assert f"even {MAX_WORKERS:,} such workers would miss the target" in said
    assert f"at epsilon 2 per answer, even {MAX_WORKERS:,} are not enough" in said


def test_a_target_met_by_the_constant_needs_no_answers() -> None:
    """If the best constant meets the target, the verdict is a single sentence."""
    made = plan(of_labels(prior=(0.9, 0.05, 0.05)), target=0.2, epsilons=(2.0,))

    assert ["No answers are needed"] == [sentence.split(":")[0] for sentence in verdict(made)]


def test_a_larger_epsilon_is_suggested_if_unprotected_answers_are_enough() -> None:
    """If unprotected answers meet the target, a larger epsilon is suggested."""
    said = verdict(plan(of_labels(), target=0.05, epsilons=(0.5,)))

    assert "The target cannot be met" in said[0]
    assert said[1].startswith("A larger epsilon may be enough: the unprotected answers of 40 workers")


def test_searches_name_round_numbers_of_workers() -> None:
    """The number of workers has two significant digits, and its prediction meets the target."""
    one = more_workers(of_labels(), "unprotected", None, 0.0, 1e-4)

    assert one is not None
    assert one.campaign.workers > 40
    assert one.campaign.workers % 10 ** (len(str(one.campaign.workers)) - 2) == 0
    assert one.prediction.error <= 2e-4


def test_searches_continue_until_a_simulation_meets_the_target() -> None:
    """If predictions without simulation are optimistic, more workers are tried."""
    campaign = of_labels(tasks=300, workers=10, rate=0.1, abilities=beta_abilities(0.75))
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=4.0)
    one = more_workers(campaign, "randomized-response", mechanism, 0.7, 0.02, check=lambda: None)

    assert one is not None
    assert one.prediction.simulated
    assert one.prediction.error <= 0.02
    assert 150 < one.campaign.workers < 500


def test_changed_campaigns() -> None:
    """More workers keep the share of assigned tasks; public participation and assignment apply once."""
    campaign = of_labels(rate=0.2, assigned_per_task=10)
    public = campaign.with_public_participation()
    assigned = of_labels(rate=0.2).with_full_assignment()

    assert 30 == campaign.with_workers(120).assigned_per_task
    assert public is not None
    assert ("public", None) == (public.participation, public.assigned_per_task)
    assert public.with_public_participation() is None
    assert assigned is not None
    assert (8, 1.0) == (assigned.assigned_per_task, assigned.answer_rate)
    assert assigned.with_full_assignment() is None
    assert public.with_full_assignment() is None
    assert of_labels(rate=1.0).with_full_assignment() is None


def test_progress_counts_simulations() -> None:
    """Progress rises by one with every simulation and never passes the total."""
    seen: list[tuple[int, int]] = []
    plan(of_numbers(), target=0.01, epsilons=(1.0,), progress=lambda done, total: seen.append((done, total)))

    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert all(done <= total for done, total in seen)


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"target": 0.0}, "the target error must be positive"), ({"target": 0.1, "epsilons": ()}, "at least one epsilon")],
)
def test_a_plan_needs_a_target_and_an_epsilon(settings, said) -> None:  # type: ignore[no-untyped-def]
    """A target of 0 or no epsilon is refused with the rule."""
    with pytest.raises(SettingsError, match=said):
        plan(of_labels(), **settings)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"workers": 0}, "at least one task and one worker"),
        ({"assigned_per_task": 41}, "assigned to 1 to 40 workers"),
        ({"workers": 200, "assigned_per_task": 3}, "assigned to 4 to 200 workers"),
        ({"method": "gaussian"}, "is dawid-skene or hierarchical-dawid-skene or one-coin"),
        ({"method": "ordinal-dawid-skene"}, "is dawid-skene or hierarchical-dawid-skene or one-coin"),
    ],
)
def test_campaigns_out_of_range_are_refused(settings, said) -> None:  # type: ignore[no-untyped-def]
    """Sizes, assignments and methods out of range are refused with the rule."""
    with pytest.raises(SettingsError, match=said):
        of_labels(**settings)


def test_the_picture_shows_candidates_and_references(met: Plan) -> None:
    """The SVG file has the names of candidates and reference lines, and is reproducible."""
    svg = svg_file(met.picture())

    for name in ("randomized-response", "designed", "best constant", "unprotected", "target"):
        assert name in svg
    assert svg == svg_file(met.picture())

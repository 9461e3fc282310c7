"""Recommendations, what to do where a target is missed, and the words for it."""

import pytest

from crowdveil.errors import SettingsError
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.planning import METHODS, MOST_WORKERS, Plan, beta_abilities, plan, verdict
from crowdveil.planning.search import full_assignment, more_workers, public_participation, with_workers
from crowdveil.planning.summary import draw
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


def test_the_smallest_epsilon_that_meets_the_target_is_recommended(met: Plan) -> None:
    """At smaller epsilons no candidate meets it; at this one, no candidate that does sends fewer bytes."""
    found = met.recommended

    assert found is not None
    assert found.epsilon == 4.0
    assert found.prediction.error <= met.target
    assert all(row.prediction.error > met.target for row in met.rows if row.epsilon < found.epsilon)
    at = [row for row in met.rows if row.epsilon == 4.0 and row.prediction.error <= met.target]
    assert found.cost.bytes == min(row.cost.bytes for row in at)


def test_candidates_that_send_the_same_share_a_prediction(met: Plan) -> None:
    """At epsilon 4 blocks and designed channel are randomized response, and their errors are equal."""
    rows = {row.line: row for row in met.rows if row.epsilon == 4.0}

    assert rows["designed"].same_as == "randomized-response"
    assert rows["designed"].prediction == rows["randomized-response"].prediction


def test_missed_epsilons_take_more_workers(met: Plan) -> None:
    """Smaller epsilons take more workers; the closed form or a simulation of that many meets the target."""
    ways = [met.workers[epsilon] for epsilon in (0.5, 2.0)]

    assert [0.5, 2.0] == sorted(met.workers)
    assert ways[0] is not None
    assert ways[1] is not None
    assert ways[0].campaign.workers > ways[1].campaign.workers > 40
    assert ways[1].prediction.error <= met.target


def test_other_ways_are_cheaper_than_the_recommendation(met: Plan) -> None:
    """Public participation and assignment meet the target at epsilons that miss it otherwise, and are simulated."""
    assert {"public", "assignment"} >= {way.change for way in met.ways} != set()
    for way in met.ways:
        assert way.mechanism is not None
        assert way.mechanism.epsilon < 4.0
        assert way.prediction.error <= met.target
        assert way.prediction.simulated


def test_an_impossible_target_is_called_so(missed: Plan) -> None:
    """Where unprotected answers miss the target, no epsilon will do, and the number of workers that would is named."""
    said = " ".join(verdict(missed))

    assert missed.recommended is None
    assert missed.unprotected_workers is not None
    assert "Impossible as asked: with 8 workers no mechanism reaches 0.02" in said
    assert f"Without protection it takes about {missed.unprotected_workers.campaign.workers:,} workers" in said
    assert "Not enough by itself at these epsilons: public participation, assigning tasks." in said
    assert f"at epsilon 4 per answer about {missed.workers[4.0].campaign.workers:,}" in said  # type: ignore[union-attr]


def test_guessing_workers_never_reach_a_target() -> None:
    """Workers right by chance alone tell nothing, however many there are."""
    said = " ".join(verdict(plan(of_labels(abilities=(1 / 3,)), target=0.3, epsilons=(2.0,))))

    assert f"even {MOST_WORKERS:,} such workers would not reach the target" in said
    assert f"at epsilon 2 per answer, none up to {MOST_WORKERS:,} were found to be enough" in said


def test_a_target_that_a_constant_meets_needs_nobody() -> None:
    """Where the best constant is good enough, that is all that is said."""
    made = plan(of_labels(prior=(0.9, 0.05, 0.05)), target=0.2, epsilons=(2.0,))

    assert ["Nobody need be asked"] == [sentence.split(":")[0] for sentence in verdict(made)]


def test_a_larger_epsilon_is_suggested_where_protection_alone_is_in_the_way() -> None:
    """If unprotected answers would do, a larger epsilon may."""
    said = verdict(plan(of_labels(), target=0.05, epsilons=(0.5,)))

    assert "Impossible as asked" in said[0]
    assert said[1].startswith("A larger epsilon may do: the unprotected answers of 40 workers")


def test_searches_name_round_numbers_of_workers() -> None:
    """The fewest workers of the form two digits and noughts: the closed form meets the target there."""
    way = more_workers(of_labels(), "unprotected", None, 1e-4, share=0.0, check=False)

    assert way is not None
    assert way.campaign.workers > 40
    assert way.campaign.workers % 10 ** (len(str(way.campaign.workers)) - 2) == 0
    assert way.prediction.error <= 2e-4


def test_searches_go_on_until_a_simulation_meets_the_target() -> None:
    """Where the closed form is far too hopeful, more workers are tried, and none is called impossible that is not."""
    campaign = of_labels(tasks=300, workers=10, rate=0.1, abilities=beta_abilities(0.75))
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=4.0)
    way = more_workers(campaign, "randomized-response", mechanism, 0.02, share=0.7, check=True)

    assert way is not None
    assert way.prediction.simulated
    assert way.prediction.error <= 0.02
    assert 150 < way.campaign.workers < 500


def test_changed_campaigns() -> None:
    """More workers keep the share of tasks assigned; all that was open becomes public or assigned, once."""
    campaign = of_labels(rate=0.2, assigned_per_task=10)
    public = public_participation(campaign)
    assigned = full_assignment(of_labels(rate=0.2))

    assert 30 == with_workers(campaign, 120).assigned_per_task
    assert public is not None
    assert ("public", None) == (public.participation, public.assigned_per_task)
    assert public_participation(public) is None
    assert assigned is not None
    assert (8, 1.0) == (assigned.assigned_per_task, assigned.rate)
    assert full_assignment(assigned) is None
    assert full_assignment(public) is None
    assert full_assignment(of_labels(rate=1.0)) is None


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
        ({"method": METHODS[-1]}, "made for dawid-skene or one-coin"),
        ({"method": "ordinal-dawid-skene"}, "made for dawid-skene or one-coin"),
        ({"rounds": 2}, "rounds are for numbers"),
    ],
)
def test_campaigns_out_of_range_are_refused(settings, said) -> None:  # type: ignore[no-untyped-def]
    """Sizes, assignments and methods that cannot be are named with the rule."""
    with pytest.raises(SettingsError, match=said):
        of_labels(**settings)


def test_the_picture_shows_every_line_and_level(met: Plan) -> None:
    """The SVG holds the name of every line and level; drawn twice it is the same, and the PNG is one."""
    svg = draw(met, "svg")

    for name in ("randomized-response", "designed", "best public constant", "unprotected", "target", "recommended"):
        assert name.encode() in svg
    assert svg == draw(met, "svg")
    assert draw(met, "png").startswith(b"\x89PNG")

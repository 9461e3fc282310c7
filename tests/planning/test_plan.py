"""Plans: candidates at one epsilon, recommendations, budgets per worker, and their sentences."""

from dataclasses import replace
from math import ceil, log2

import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.display.svg_pictures import svg_file
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import QuantizedResponse, RandomizedResponse
from crowdveil.planning import (
    CANDIDATE_NAMES,
    MAX_WORKERS,
    NumberCrowd,
    Plan,
    PlannedCampaign,
    beta_abilities,
    candidates,
    finding_sentences,
    plan_campaign,
    plan_of_worker_budgets,
    predict_campaign_error,
)
from crowdveil.planning.candidates import ORDINAL_SUFFIX, channel_key, worker_cost
from crowdveil.planning.plan import more_workers
from crowdveil.planning.plan_sentences import row_epsilon_text
from crowdveil.planning.worker_budget import (
    compared_task_loads,
    largest_cell_count,
    with_task_load,
)
from tests.planning.campaigns import of_labels, of_numbers

EPSILONS = (0.5, 2.0, 4.0)


@pytest.fixture(scope="module")
def met() -> Plan:
    """A plan whose target is met at epsilon 4 and not below."""
    return plan_campaign(of_labels(rate=0.25), target=0.15, epsilons=EPSILONS)


@pytest.fixture(scope="module")
def missed() -> Plan:
    """A plan whose target even the unprotected answers miss."""
    return plan_campaign(of_labels(workers=8), target=0.02, epsilons=EPSILONS)


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
    said = " ".join(finding_sentences(missed))

    assert missed.recommended is None
    assert missed.workers_needed_unprotected is not None
    assert "The target cannot be met: with 8 workers no mechanism of this plan reaches 0.02" in said
    assert f"Without protection it needs about {missed.workers_needed_unprotected.campaign.workers:,} workers" in said
    assert "Not enough by itself at these epsilons: public participation, assigning tasks." in said
    assert f"at epsilon 4 per answer about {missed.workers_needed[4.0].campaign.workers:,}" in said


def test_guessing_workers_never_reach_a_target() -> None:
    """Workers who guess are not enough in any number."""
    said = " ".join(finding_sentences(plan_campaign(of_labels(abilities=(1 / 3,)), target=0.3, epsilons=(2.0,))))

    assert f"even {MAX_WORKERS:,} such workers would miss the target" in said
    assert f"at epsilon 2 per answer, even {MAX_WORKERS:,} are not enough" in said


def test_a_target_met_by_the_constant_needs_no_answers() -> None:
    """If the best constant meets the target, the verdict is a single sentence."""
    made = plan_campaign(of_labels(prior=(0.9, 0.05, 0.05)), target=0.2, epsilons=(2.0,))

    assert ["No answers are needed"] == [sentence.split(":")[0] for sentence in finding_sentences(made)]


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
    public = campaign.public_unassigned_campaign()
    assigned = of_labels(rate=0.2).with_assigned_as_answered()

    assert 30 == campaign.with_worker_count(120).assigned_per_task
    assert public is not None
    assert ("public", None) == (public.participation, public.assigned_per_task)
    assert public.public_unassigned_campaign() is None
    assert assigned is not None
    assert (8, 1.0) == (assigned.assigned_per_task, assigned.answered_cell_share)
    assert assigned.with_assigned_as_answered() is None
    assert public.with_assigned_as_answered() is None
    assert of_labels(rate=1.0).with_assigned_as_answered() is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"target": 0.0}, "the target error must be positive"), ({"target": 0.1, "epsilons": ()}, "at least one epsilon")],
)
def test_a_plan_needs_a_target_and_an_epsilon(settings, said) -> None:
    """A target of 0 or no epsilon is refused with the rule."""
    with pytest.raises(SettingsError, match=said):
        plan_campaign(of_labels(), **settings)


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
def test_campaigns_out_of_range_are_refused(settings, said) -> None:
    """Sizes, assignments and methods out of range are refused with the rule."""
    with pytest.raises(SettingsError, match=said):
        of_labels(**settings)


def test_the_picture_shows_candidates_and_references(met: Plan) -> None:
    """The SVG file has the names of candidates and reference lines, and is reproducible."""
    svg = svg_file(met.picture())

    for name in ("randomized-response", "designed", "best constant", "unprotected", "target"):
        assert name in svg
    assert svg == svg_file(met.picture())


@pytest.mark.parametrize("campaign", [of_labels(), of_labels(participation="public"), of_numbers()])
def test_candidates_keep_their_epsilon(campaign: PlannedCampaign) -> None:
    """All applicable types are present, keep the epsilon, and are no more informative than the designed channel."""
    made = candidates(campaign, 1.0)
    said = {one.name: campaign.mutual_information_of_cell(one.mechanism.channel()) for one in made}

    assert [name for name in CANDIDATE_NAMES if name in said] == list(said)
    numbers = isinstance(campaign.crowd, NumberCrowd)
    assert set(CANDIDATE_NAMES[:4]) - ({"subset-selection"} if numbers else set()) <= said.keys()
    assert all(0.99 < one.mechanism.guarantee.epsilon <= 1.0 for one in made)
    assert max(said.values()) <= said["designed"] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("campaign", "ordinal"),
    [
        (of_labels(), False),
        (of_labels(ordered=True), True),
        (of_labels(ordered=True, labels=2), False),
        (of_labels(ordered=True, method="dawid-skene"), False),
        (of_numbers(), False),
    ],
)
def test_types_apply_to_their_campaigns(campaign: PlannedCampaign, ordinal: bool) -> None:
    """Ordinal candidates need three ordered labels and no given method."""
    made = candidates(campaign, 2.0)

    assert ordinal == any(one.name.endswith(ORDINAL_SUFFIX) for one in made)
    assert all(
        ("ordinal-dawid-skene" == one.campaign.estimator_of_simulated_fits.name) == one.name.endswith(ORDINAL_SUFFIX)
        for one in made
    )


@pytest.mark.parametrize(
    ("told", "names"),
    [
        (False, ["randomized-response", "ogpm", "square-wave"]),
        (True, ["randomized-response", "quantized-response", "designed", "ogpm", "square-wave"]),
    ],
)
def test_candidates_for_numbers_depend_on_the_prior(told: bool, names: list[str]) -> None:
    """Windows are tried for all numbers; without a prior, no table chosen for one is."""
    campaign = replace(of_numbers(workers=12), prior_public=told)

    assert names == [one.name for one in candidates(campaign, 1.0)]
    assert [name for name in names if name != "designed"] == [
        one.name for one in candidates(campaign, 1.0, without_designed=True)
    ]


@pytest.mark.parametrize(("told", "asked"), [(False, True), (True, False)])
def test_a_prior_of_numbers_is_asked_for(told: bool, asked: bool) -> None:
    """Without the shares of the truths the plan asks for them."""
    campaign = replace(of_numbers(workers=4, tasks=10, rate=1.0, participation="public"), prior_public=told)
    made = plan_campaign(campaign, target=0.01, epsilons=(0.5,))

    assert asked == any("last term's grades" in sentence for sentence in finding_sentences(made))


def test_candidates_that_err_more_than_the_constant_are_ordered_by_their_bayes_error() -> None:
    """Differences between useless errors are noise: the mechanism with the smaller lower bound is better."""
    campaign = of_numbers(workers=4, tasks=10, rate=1.0, participation="public")
    made = plan_campaign(campaign, target=0.01, epsilons=(0.5,))
    constant, (first, second, *_) = campaign.crowd.constant_error, made.results
    rows = [
        replace(row, prediction=replace(row.prediction, error=constant + more, known_classes=constant - less))
        for row, more, less in ((first, 0.1, 0.1), (second, 0.2, 0.3))
    ]

    assert replace(made, results=tuple(rows)).best is rows[1]
    better = replace(rows[0], prediction=replace(rows[0].prediction, error=0.9 * constant))
    assert replace(made, results=(better, rows[1])).best is better


def test_channel_keys_ignore_names_of_symbols() -> None:
    """Blocks of single labels have the key of randomized response; another epsilon has another key."""
    alphabet = Categories(("no", "yes"))
    response = RandomizedResponse(alphabet=alphabet, epsilon=1.0)
    blocks = QuantizedResponse(alphabet=alphabet, epsilon=1.0, blocks=((1,), (0,)))

    assert channel_key(response.channel()) == channel_key(blocks.channel())
    assert channel_key(response.channel()) != channel_key(RandomizedResponse(alphabet=alphabet, epsilon=2.0).channel())


@pytest.mark.parametrize("participation", ["protected", "public"])
def test_cost_follows_the_stated_formula(participation) -> None:
    """Bytes are one fixed-width symbol per task; epsilon sums over the cells that cost privacy."""
    campaign = of_labels(labels=4, tasks=61, rate=0.25, participation=participation)
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=1.0, participation=participation)
    found = worker_cost(campaign, mechanism)

    assert found.bytes == ceil(61 * ceil(log2(5)) / 8)
    assert found.cells == (61 if participation == "protected" else 16)
    assert found.worker_epsilon == pytest.approx(found.cells * found.cell_epsilon)


def test_assigned_workers_report_their_own_cells_only() -> None:
    """With 10 of 40 workers per task a worker has 15 of 60 tasks, answers them twice as fully, and pays for 15."""
    campaign = of_labels(rate=0.2, assigned_per_task=10)
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=1.0)

    assert (15, 0.8, 10) == (
        campaign.cells_per_worker,
        pytest.approx(campaign.answered_cell_share),
        campaign.reporters_per_task,
    )
    assert worker_cost(campaign, mechanism).cells == 15


BUDGETS, TARGET = (1.0, 4.0, 12.0), 0.35


@pytest.fixture(scope="module")
def made() -> Plan:
    """Plan of 60 tasks and 40 workers for three budgets and both kinds of participation."""
    return plan_of_worker_budgets(of_labels(), BUDGETS, target=TARGET, participations=("protected", "public"))


@pytest.mark.slow
def test_every_budget_has_a_choice_that_keeps_it(made: Plan) -> None:
    """Choices ascend by budget, are no worse than without assignment, and no worker loses more than the budget."""
    pairs = [(one.budget, one.campaign.participation) for one in made.results]

    assert [(budget, hidden) for budget in BUDGETS for hidden in ("protected", "public")] == pairs
    for one in (*made.results, *made.without_assignment):
        assert one.cost.cells == largest_cell_count(one.campaign)
        assert one.cost.worker_epsilon <= one.budget_or_epsilon
        assert one.mechanism.guarantee.participation == one.campaign.participation
    for hidden in ("protected", "public"):
        errors = [one.prediction.error for one in made.results if one.campaign.participation == hidden]
        assert sorted(errors, reverse=True) == errors
    for whole in made.without_assignment:
        best = min(one.prediction.error for one in made.results if one.budget == whole.budget)
        assert (made.campaign.tasks, True) == (whole.cost.cells, best <= whole.prediction.error)


@pytest.mark.slow
def test_the_choice_is_near_the_best_of_a_full_search() -> None:
    """Simulating every load finds an error at most .03 below that of the choice."""
    campaign = of_labels()
    chosen = plan_of_worker_budgets(campaign, (12.0,)).results[0]
    full = []
    for load in compared_task_loads(campaign):
        assigned = with_task_load(campaign, load)
        for one in candidates(assigned, 12.0 / largest_cell_count(assigned) * (1 - 1e-12), without_designed=True):
            full.append(predict_campaign_error(one.campaign, one.mechanism).error)

    assert min(full) >= chosen.prediction.error - 0.03


def test_the_least_budget_meets_the_target(made: Plan) -> None:
    """It is the first choice whose error is at most the target; smaller budgets say how many workers they need."""
    least = made.recommended

    assert least is not None
    assert least.prediction.error <= TARGET
    smaller = [one for one in made.results if one.budget_or_epsilon < least.budget_or_epsilon]
    assert all(one.prediction.error > TARGET for one in smaller)
    assert {one.budget_or_epsilon for one in smaller} <= set(made.workers_needed)
    for budget, more in made.workers_needed.items():
        if more is not None and more.mechanism is not None:
            assert more.campaign.workers > made.campaign.workers
            assert largest_cell_count(more.campaign) * more.mechanism.guarantee.epsilon <= budget


def test_sentences_name_the_worker_first(made: Plan) -> None:
    """The recommendation and the promise state epsilon per worker before epsilon per answer."""
    least = made.recommended
    assert least is not None
    promise = row_epsilon_text(least)

    assert promise.index("per worker") < promise.index("per answer")
    assert promise in finding_sentences(made)[0]
    assert "Without assignment" in finding_sentences(made)[1]


@pytest.mark.parametrize("budgets", [(), (0.0,), (-1.0,), (float("inf"),)])
def test_a_budget_must_be_positive(budgets: tuple[float, ...]) -> None:
    """No budget, or one that is not positive and finite, is refused."""
    with pytest.raises(SettingsError, match="budgets per worker"):
        plan_of_worker_budgets(of_labels(), budgets)


def test_an_assigned_campaign_is_refused() -> None:
    """The search chooses the assignment itself."""
    with pytest.raises(SettingsError, match="over all assignments"):
        plan_of_worker_budgets(of_labels(assigned_per_task=5), BUDGETS)


@pytest.mark.parametrize("load", [2, 3, 7])
def test_more_workers_have_no_more_tasks_each(load: int) -> None:
    """The epsilon of a cell is a share of the budget by the tasks of a worker, whatever the number of workers."""
    assigned = with_task_load(of_labels(), load)

    assert all(
        largest_cell_count(assigned.with_worker_count(workers)) <= load for workers in range(assigned.workers, 400)
    )

"""Campaigns built from their settings: the assignment that is drawn, and several questions."""

import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.campaign.settings.build import build_campaign, requested_mechanism
from crowdveil.campaign.settings.draw_assignment import draw_assignment
from crowdveil.campaign.settings.privacy_request import PrivacyRequest
from crowdveil.campaign.settings.settings_file import read_settings
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.rounding import lower_exact_value
from crowdveil.errors import CrowdveilError, SettingsError
from crowdveil.mechanisms import RandomizedResponse, TwoLayer
from crowdveil.randomness import secure, seeded
from tests.campaign.planning.sample_campaigns import former_sample
from tests.campaign.settings.test_settings_file import SAMPLES

SOURCE = former_sample()


@pytest.mark.slow
@given(
    st.sampled_from(["laplace", "randomized-response"]),
    st.floats(0.1, 20),
    st.integers(1, 30),
    st.sampled_from(["protected", "public"]),
)
def test_all_answers_together_stay_within_the_budget(mechanism, budget, cells, participation):
    """The certified epsilon times the cells is at most the budget, and less by the rounding of cells to 2^-48 alone."""
    request = PrivacyRequest(mechanism=mechanism, budget_per_worker=budget)

    made = requested_mechanism(request, Scale(0, 4), participation, cells=cells)

    channel = made.channel()
    spent = lower_exact_value(channel.epsilon) * cells
    rounding = cells * 2 / (2**48 * Fraction(float(channel.probabilities.min())))
    assert Fraction(budget) * (1 - Fraction(1, 10**9)) - rounding <= spent <= Fraction(budget)


def test_an_epsilon_per_answer_is_kept():
    """An epsilon per answer does not depend on the number of answers."""
    request = PrivacyRequest(mechanism="randomized-response", epsilon_per_answer=0.7)

    made = requested_mechanism(request, Categories(("a", "b")), "public", cells=9)

    assert 0.7 == made.epsilon
    assert 0.7 - 1e-9 <= made.channel().epsilon <= 0.7


def test_reports_name_blocks_of_answers():
    """With cuts a report names a block of labels, and participation is protected by one more symbol."""
    request = PrivacyRequest(mechanism="quantized-response", budget_per_worker=4.0, cuts=(3, 8))

    made = requested_mechanism(request, Scale(0, 10), "protected", cells=2)

    assert ("0..2", "3..7", "8..10", "NULL") == made.channel().outputs
    assert 2.0 == pytest.approx(made.channel().epsilon)


@pytest.mark.parametrize("mechanism", ["one-layer", "two-layer"])
def test_two_layer_is_asked_as_the_table_of_its_mean_flip(mechanism):
    """With a flip probability for every cell, two-layer has the table of one-layer, up to the rounding of its ends."""
    alphabet = Categories(("a", "b", "c"))
    exact = TwoLayer.calibrated(alphabet=alphabet, epsilon=1.5).marginal_channel()

    made = requested_mechanism(
        PrivacyRequest(mechanism=mechanism, epsilon_per_answer=1.5), alphabet, "protected", cells=2
    ).channel()

    assert "one-layer" == made.mechanism
    for row, other in zip(made.rows, exact.rows, strict=True):
        for entry, wide in zip(row, other, strict=True):
            assert abs(Fraction(entry, made.denominator) - Fraction(wide, exact.denominator)) < Fraction(10, 2**48)


def test_levels_become_channels_within_their_budgets():
    """Each level has one channel, whose loss for all tasks of a worker, from its table, is at most the level."""
    levels = (1.0, 2.0, 4.0)
    request = PrivacyRequest(mechanism="randomized-response", budget_per_worker=1.0, levels=levels)

    campaign, _, (mechanism, *_) = build_campaign(replace(SOURCE, privacy=request), seeded(1))

    assert (3, None) == (campaign.levels, campaign.groups)
    assert mechanism.channel().rows == campaign.channels[0].rows
    for level, certificate in zip(levels, campaign.certificates, strict=True):
        ratio = max(Fraction(max(column), min(column)) for column in zip(*certificate["rows"], strict=True))
        assert level * (1 - 1e-9) <= campaign.cells * math.log(ratio) <= level
    assert campaign.worker_epsilon <= levels[-1]


def test_levels_that_a_mechanism_cannot_tell_apart_are_refused():
    """Two levels with the same table are refused with the epsilons that they would have."""
    request = PrivacyRequest(mechanism="randomized-response", budget_per_worker=1.0, levels=(1.0, 2.0))
    same = lambda _: RandomizedResponse(alphabet=SOURCE.alphabet, epsilon=0.01)  # noqa: E731

    with pytest.raises(SettingsError, match=r"more epsilon for an answer than the one before, got \[0.01, 0.01\]"):
        build_campaign(replace(SOURCE, privacy=request), seeded(1), build=same, others=(same,))


def test_cuts_are_dealt_to_the_slots_in_turn():
    """Each group of cuts is one channel; neighbouring slots have different ones, the same for all of their tasks."""
    request = PrivacyRequest(
        mechanism="quantized-response", budget_per_worker=2.0, cuts=(3,), dealt_cuts=((3,), (6,), (2, 8))
    )

    campaign, parts, _ = build_campaign(replace(SOURCE, privacy=request), seeded(1))

    for slot in range(6):
        found = {campaign.channel_of(slot, task).outputs for task in parts[0].tasks(slot)}
        assert {campaign.channels[slot % 3].outputs} == found
    assert [3, 3, 4] == [len(channel.outputs) for channel in campaign.channels]
    assert campaign.worker_epsilon <= 2.0


def test_the_sample_becomes_a_campaign():
    """The campaign has the texts and tasks of its settings, and keeps budget and exclusions."""
    campaign, parts, _ = build_campaign(SOURCE, seeded(1))

    assert (SOURCE.title, SOURCE.tasks, 12, 5) == (campaign.title, campaign.tasks, campaign.slots, campaign.cells)
    assert campaign.worker_epsilon <= 5.0
    assert all(slot not in parts[0].tasks(slot) for slot in range(12))


def test_every_task_needs_a_worker():
    """Fewer answers than tasks are refused."""
    with pytest.raises(SettingsError, match="every task needs a worker"):
        build_campaign(replace(SOURCE, slots=2, per_worker=5, excluded=SOURCE.excluded[:2]))


def test_a_task_that_is_excluded_for_everyone_is_refused():
    """Exclusions that leave a task without a worker are refused, and the task is named."""
    excluded = tuple(frozenset({*own, 3}) for own in SOURCE.excluded)

    with pytest.raises(SettingsError, match=f"task '{SOURCE.tasks[3].id}' has none"):
        build_campaign(replace(SOURCE, per_worker=None, excluded=excluded))


STUDENTS, EACH, DRAWINGS = 72, 5, 1_000
OWN = [{student} for student in range(STUDENTS)]


def slots_per_task(lists, tasks):
    """Return the number of slots of each task."""
    return np.bincount([task for taken in lists for task in taken], minlength=tasks)


@pytest.mark.slow
def test_nobody_is_asked_about_the_own_essay_in_a_thousand_drawings():
    """In 1,000 drawings no student gets the own essay, each gets five others, and each essay has five readers.

    All other pairs are equally frequent: each count is binomial(1000, 5/71); the largest of 5,112 deviations exceeds
    six standard deviations with probability below 1e-4.
    """
    pairs = np.zeros((STUDENTS, STUDENTS), dtype=int)
    source = seeded(1)
    for _ in range(DRAWINGS):
        lists = draw_assignment(STUDENTS, STUDENTS, EACH, OWN, source)
        assert {EACH} == set(map(len, lists)) == set(slots_per_task(lists, STUDENTS).tolist())
        for slot, taken in enumerate(lists):
            pairs[slot, list(taken)] += 1

    share = EACH / (STUDENTS - 1)
    deviations = np.abs(pairs - DRAWINGS * share) / np.sqrt(DRAWINGS * share * (1 - share))

    assert 0 == np.trace(pairs)
    assert deviations[~np.eye(STUDENTS, dtype=bool)].max() < 6


@st.composite
def requests(draw):
    """Draw numbers of tasks and slots, tasks per worker, and exclusions that leave enough tasks."""
    tasks, slots = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    each = draw(st.integers(1, tasks))
    exclusions = st.sets(st.integers(0, tasks - 1), max_size=tasks - each)
    return tasks, slots, each, draw(st.lists(exclusions, min_size=slots, max_size=slots))


@pytest.mark.slow
@given(requests(), st.integers(0, 100))
def test_no_exchange_would_balance_more(request, seed):
    """Every slot gets its number of allowed tasks, and the sum of squared loads is the smallest that is possible."""
    tasks, slots, each, excluded = request

    lists = draw_assignment(tasks, slots, each, excluded, seeded(seed))

    assert [each] * slots == [len(set(taken)) for taken in lists]
    assert all(list(taken) == sorted(set(taken) - excluded[slot]) for slot, taken in enumerate(lists))
    assert best_squares(tasks, each, excluded) == int((slots_per_task(lists, tasks) ** 2).sum())


def best_squares(tasks, each, excluded):
    """Return the smallest sum of squared numbers of slots per task, by augmenting paths.

    Slots are served one by one; each unit of flow ends at the reachable task with the smallest load.
    """
    held: list[set[int]] = [set() for _ in excluded]
    loads = [0] * tasks
    for slot in range(len(excluded)):
        for _ in range(each):
            came: dict[int, tuple[int, int | None]] = {
                task: (slot, None) for task in range(tasks) if task not in excluded[slot] | held[slot]
            }
            queue = list(came)
            for task in queue:
                for other in range(slot + 1):
                    if task in held[other]:
                        for new in set(range(tasks)) - excluded[other] - held[other] - came.keys():
                            came[new] = (other, task)
                            queue.append(new)
            task = min(queue, key=lambda task: loads[task])
            loads[task] += 1
            while task is not None:
                other, given_up = came[task]
                held[other].add(task)
                if given_up is not None:
                    held[other].remove(given_up)
                task = given_up
    return sum(load**2 for load in loads)


def test_without_a_number_everybody_gets_all_other_tasks():
    """Without a number per worker each slot gets every task that is not excluded."""
    assert ((1, 2), (0, 2), (0, 1, 2)) == draw_assignment(3, 3, None, [{0}, {1}, set()], secure())


@pytest.mark.parametrize("each", [None, 2])
def test_too_few_tasks_are_refused(each):
    """A worker who may get fewer tasks than needed is named."""
    excluded = [set(), {0, 1} if each else {0, 1, 2}]
    with pytest.raises(SettingsError, match="worker 1 has") as caught:
        draw_assignment(3, 2, each, excluded, secure())

    assert "not_for" in caught.value.hint


SAMPLE = SAMPLES / "questions.toml"
TOP = """title = "Essays"
consent = "Randomized here."
open = { from = 2027-01-10, until = 2027-01-17 }
min_reports = 2
participation = "protected"
workers = { count = 6 }
"""
LABELS = 'answers = { labels = ["no", "yes"] }'
GRADES = "answers = { scale = { low = 0, high = 4, step = 1 } }"
TASKS = 'tasks = { file = "tasks.csv", per_worker = 2 }'
BUDGET = 'privacy = { mechanism = "randomized-response", budget_per_worker = 6 }'


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a settings file: lines of the whole file, and of each question."""

    def write(top, *questions):
        (tmp_path / "tasks.csv").write_text("id,text\na,One?\nb,Two?\nc,Three?\n", "utf-8")
        (tmp_path / "more.csv").write_text("id,text\na,Four?\nz,Five?\n", "utf-8")
        tables = [f'[[question]]\ntext = "Question {k}?"\n{lines}\n' for k, lines in enumerate(questions, start=1)]
        path = tmp_path / "campaign.toml"
        path.write_text("\n".join([TOP, top, *tables]), "utf-8")
        return path

    return write


def test_the_sample_asks_two_questions_about_the_same_essays():
    """Answers are those of each question; tasks, days and workers are shared; the budget is divided equally."""
    source = read_settings(SAMPLE)
    first, second = source.by_question

    assert ("How good is this essay?", Scale(0, 10)) == (first.question, first.alphabet)
    assert ("Does it name its sources?", Categories(("no", "yes"))) == (second.question, second.alphabet)
    assert (first.rows, first.excluded, first.names) == (second.rows, second.excluded, second.names)
    assert 8.0 == source.budget
    assert [True, True] == [0 <= 4 - (one.privacy.budget_per_worker or 0) < 1e-12 for one in (first, second)]


def test_a_worker_answers_all_questions_about_the_same_tasks(write):
    """Questions with equal tasks are dealt alike; another file, or another number of tasks, is dealt by itself."""
    source = read_settings(write(f"{TASKS}\n{BUDGET}", LABELS, GRADES, f'{GRADES}\ntasks = {{ file = "more.csv" }}'))
    campaign, parts, mechanisms = build_campaign(source, seeded(1))
    lists = [tasks for part in parts for tasks in part.lists]

    assert [[task + 3 for task in own[:2]] for own in lists] == [list(own[2:4]) for own in lists]
    assert {(6, 7)} == {own[4:] for own in lists}
    assert [2, 2, 2] == [question.cells for question in campaign.questions]
    assert ["a", "b", "c", "a", "b", "c", "a", "z"] == [task.id for task in campaign.tasks]
    assert 3 == len(mechanisms)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.5, 40), st.lists(st.tuples(st.booleans(), st.integers(1, 3)), min_size=2, max_size=5))
def test_all_questions_together_stay_within_the_budget(budget, kinds):
    """The promised sum over all questions is at most the budget, and nearly all of it; by the tables, exactly."""
    source = read_settings(SAMPLE)
    privacy = replace(
        source.privacy, mechanism="randomized-response", budget_per_worker=budget / len(kinds) * (1 - 1e-15)
    )
    alphabets = (Categories(("no", "yes")), Scale(0, 4))
    questions = [
        replace(source, question=f"Q{k}?", alphabet=alphabets[scale], per_worker=load, privacy=privacy, others=())
        for k, (scale, load) in enumerate(kinds)
    ]
    whole = replace(questions[0], others=tuple(questions[1:]), budget=budget)

    campaign, _, _ = build_campaign(whole, seeded(1))

    spent = sum(
        lower_exact_value(channel.epsilon) * question.cells
        for channel, question in zip(campaign.channels, campaign.questions, strict=True)
    )
    assert Fraction(budget) * (1 - Fraction(1, 10**6)) <= spent <= Fraction(budget)
    assert campaign.worker_epsilon <= budget


def test_each_question_can_have_its_own_mechanism_and_budget(write):
    """A budget of its own stands before that of the file, which then bounds the sum."""
    own = "privacy = { budget_per_worker = %s }"
    other = 'privacy = { mechanism = "laplace", epsilon_per_answer = 1.5 }'
    source = read_settings(write(f"{TASKS}\n{BUDGET}", f"{LABELS}\n{own % 2}", f"{GRADES}\n{other}"))
    campaign, _, _ = build_campaign(source, seeded(1))
    over = read_settings(write(f"{TASKS}\n{BUDGET}", f"{LABELS}\n{own % 4}", f"{GRADES}\n{other}"))

    assert ["randomized-response", "laplace"] == [channel.mechanism for channel in campaign.channels]
    assert [1.0, 1.5] == pytest.approx([channel.epsilon for channel in campaign.channels])
    assert 5.0 == pytest.approx(campaign.worker_epsilon)
    with pytest.raises(SettingsError, match="together must keep the budget of a worker, 6"):
        build_campaign(over, seeded(1))


@pytest.mark.parametrize(
    ("top", "questions", "rule"),
    [
        (BUDGET, [f"{LABELS}\n{TASKS}"], "2 to 64 times"),
        (f"{TASKS}\n{BUDGET}", [LABELS, GRADES + "\nprivacy = { budget_per_worker = 2 }"], "or none may have one"),
        (f"{TASKS}\nprivacy = {{ mechanism = 'laplace', levels = [1, 2] }}", [LABELS, GRADES], "levels can have"),
        (f"{TASKS}\n{BUDGET}", [LABELS, GRADES + "\nprivacy = { prior = 'p.csv' }"], "prior can have only"),
        (BUDGET, [f"{LABELS}\n{TASKS}", GRADES], "question 2.tasks is needed"),
        (f"{TASKS}\n{BUDGET}", [LABELS, GRADES + "\nshare = 2"], "question 2 has no setting 'share'"),
        (f"{TASKS}\n{BUDGET}", [LABELS, GRADES + '\nprivacy = { mechanism = "best" }'], "question 2.privacy.mech"),
        (f"{TASKS}\n{BUDGET}", [LABELS, ""], "question 2.answers is needed"),
        (f"{TASKS}\nprivacy = {{ mechanism = 'quantized-response', epsilon_per_answer = 1, cuts = [[1], [2]] }}",
         [GRADES, GRADES], "groups of cuts can have only one"),
        (f"{TASKS}\n{BUDGET}\nservice = {{ url = 'https://a.org', purge_after_days = 3 }}\n"
         "relay = { operator = 'The library', least_batch = 2, unit = 'cell' }", [LABELS, GRADES], "relay"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_several_questions_is_refused(write, top, questions, rule):
    """Each refusal names the rule, and the question where there is one."""
    with pytest.raises(CrowdveilError, match=rule):
        read_settings(write(top, *questions))


def test_two_questions_that_look_alike_are_refused(write):
    """A worker could not tell them apart."""
    path = write(f"{TASKS}\n{BUDGET}", LABELS, GRADES)
    path.write_text(re.sub(r"Question 2\?", "Question  1?", path.read_text("utf-8")), "utf-8")

    with pytest.raises(SettingsError, match="look alike"):
        read_settings(path)


def test_tasks_of_two_questions_may_have_one_name(write):
    """Names of tasks differ within a question, and may be those of another one."""
    path = write(BUDGET, f"{LABELS}\n{TASKS}", f'{GRADES}\ntasks = {{ file = "more.csv" }}')
    assert [3, 2] == [len(one.tasks) for one in read_settings(path).by_question]
    (path.parent / "tasks.csv").write_text("id,text\na,One?\na,Two?\n", "utf-8")

    with pytest.raises(CrowdveilError, match="must occur once"):
        read_settings(path)

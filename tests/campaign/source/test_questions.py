"""Several questions in a settings file: what they share, how the budget is divided, and what is refused."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.campaign.source.build import build_campaign
from crowdveil.campaign.source.settings_file import read_source
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.rounding import lower_of_binary_and_decimal
from crowdveil.errors import CrowdveilError, SettingsError
from crowdveil.randomness import seeded
from tests.campaign.source.test_settings_file import SAMPLES

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
    source = read_source(SAMPLE)
    first, second = source.by_question

    assert ("How good is this essay?", Scale(0, 10)) == (first.question, first.alphabet)
    assert ("Does it name its sources?", Categories(("no", "yes"))) == (second.question, second.alphabet)
    assert (first.rows, first.excluded, first.names) == (second.rows, second.excluded, second.names)
    assert 8.0 == source.budget
    assert [True, True] == [0 <= 4 - (one.privacy.budget_per_worker or 0) < 1e-12 for one in (first, second)]


def test_a_worker_answers_all_questions_about_the_same_tasks(write):
    """Questions with equal tasks are dealt alike; another file, or another number of tasks, is dealt by itself."""
    source = read_source(write(f"{TASKS}\n{BUDGET}", LABELS, GRADES, f'{GRADES}\ntasks = {{ file = "more.csv" }}'))
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
    source = read_source(SAMPLE)
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
        lower_of_binary_and_decimal(channel.epsilon) * question.cells
        for channel, question in zip(campaign.channels, campaign.questions, strict=True)
    )
    assert Fraction(budget) * (1 - Fraction(1, 10**6)) <= spent <= Fraction(budget)
    assert campaign.worker_epsilon <= budget


def test_each_question_can_have_its_own_mechanism_and_budget(write):
    """A budget of its own stands before that of the file, which then bounds the sum."""
    own = "privacy = { budget_per_worker = %s }"
    other = 'privacy = { mechanism = "laplace", epsilon_per_answer = 1.5 }'
    source = read_source(write(f"{TASKS}\n{BUDGET}", f"{LABELS}\n{own % 2}", f"{GRADES}\n{other}"))
    campaign, _, _ = build_campaign(source, seeded(1))
    over = read_source(write(f"{TASKS}\n{BUDGET}", f"{LABELS}\n{own % 4}", f"{GRADES}\n{other}"))

    assert ["randomized-response", "laplace"] == [channel.mechanism for channel in campaign.channels]
    assert [1.0, 1.5] == pytest.approx([channel.epsilon for channel in campaign.channels])
    assert 5.0 == pytest.approx(campaign.worker_epsilon)
    with pytest.raises(SettingsError, match="together must keep the budget of a worker, 6"):
        build_campaign(over, seeded(1))


@pytest.mark.parametrize(
    ("top", "questions", "rule"),
    [
        (BUDGET, [f"{LABELS}\n{TASKS}"], "2 to 64 times"),
        (f"{TASKS}\n{BUDGET}", [LABELS, GRADES + "\nprivacy = { budget_per_worker = 2 }"], "or none has one"),
        (f"{TASKS}\nprivacy = {{ mechanism = 'laplace', levels = [1, 2] }}", [LABELS, GRADES], "levels goes with one"),
        (f"{TASKS}\n{BUDGET}", [LABELS, GRADES + "\nprivacy = { prior = 'p.csv' }"], "prior goes with one"),
        (BUDGET, [f"{LABELS}\n{TASKS}", GRADES], "question 2.tasks is needed"),
        (f"{TASKS}\n{BUDGET}", [LABELS, GRADES + "\nshare = 2"], "question 2 has no setting 'share'"),
        (f"{TASKS}\n{BUDGET}", [LABELS, GRADES + '\nprivacy = { mechanism = "best" }'], "question 2.privacy.mech"),
        (f"{TASKS}\n{BUDGET}", [LABELS, ""], "question 2.answers is needed"),
        (f"{TASKS}\nprivacy = {{ mechanism = 'quantized-response', epsilon_per_answer = 1, cuts = [[1], [2]] }}",
         [GRADES, GRADES], "groups of cuts go with one question"),
        (f"{TASKS}\n{BUDGET}\nservice = {{ url = 'https://a.org', purge_after_days = 3 }}\n"
         "relay = { operator = 'The library', least_batch = 2, unit = 'cell' }", [LABELS, GRADES], "relay"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_several_questions_is_refused(write, top, questions, rule):
    """Each refusal names the rule, and the question where there is one."""
    with pytest.raises(CrowdveilError, match=rule):
        read_source(write(top, *questions))


def test_two_questions_that_look_alike_are_refused(write):
    """A worker could not tell them apart."""
    path = write(f"{TASKS}\n{BUDGET}", LABELS, GRADES)
    path.write_text(re.sub(r"Question 2\?", "Question  1?", path.read_text("utf-8")), "utf-8")

    with pytest.raises(SettingsError, match="look alike"):
        read_source(path)


def test_tasks_of_two_questions_may_have_one_name(write):
    """Names of tasks differ within a question, and may be those of another one."""
    path = write(BUDGET, f"{LABELS}\n{TASKS}", f'{GRADES}\ntasks = {{ file = "more.csv" }}')
    assert [3, 2] == [len(one.tasks) for one in read_source(path).by_question]
    (path.parent / "tasks.csv").write_text("id,text\na,One?\na,Two?\n", "utf-8")

    with pytest.raises(CrowdveilError, match="occurs once"):
        read_source(path)

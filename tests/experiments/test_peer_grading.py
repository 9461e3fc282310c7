"""The peer-grading experiment keeps its rules: five essays each, never the own one, within the budget."""

import numpy as np
from experiments.collection.peer_grading import BUDGET, EACH, GRADES, STUDENTS, Graders, assign, gap, simulate

from crowdveil import Laplace


def test_students_grade_five_essays_and_never_the_own_one() -> None:
    """In 1,000 drawings every student grades five essays of others, and every essay has five graders."""
    for seed in range(1_000):
        essays = assign(seed)

        assert all(EACH == len(set(own)) and student not in own for student, own in enumerate(essays))
        assert {EACH} == set(np.bincount(np.concatenate(essays), minlength=STUDENTS).tolist())


def test_simulated_answers_are_on_the_assigned_cells() -> None:
    """Every assigned essay has one grade of the scale, and without errors it is the rounded true grade."""
    known = Graders(np.linspace(0, 10, 50), np.zeros(1), "test")
    truth, answers, assignment = simulate(known, 3)

    assert STUDENTS * EACH == len(answers) == len(assignment)
    assert gap(np.rint(truth)[answers.task], answers.numbers) == 0


def test_the_budget_holds_for_all_grades_of_a_student() -> None:
    """The certified loss of five grades is at most the budget."""
    channel = Laplace(alphabet=GRADES, epsilon=BUDGET / EACH).channel()

    assert EACH * channel.epsilon <= BUDGET

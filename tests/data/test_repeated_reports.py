"""Joined rounds of memoised reports."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil import DawidSkene, Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.data.repeated_reports import join_rounds
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms.memoised import Memoised
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd

LABELS = Categories(("no", "yes", "maybe"))


def rounds_of(mechanism, answers, rounds, seed):
    """Reports of every worker's device in several rounds."""
    tasks, workers, channel = len(answers.tasks), len(answers.workers), mechanism.channel()
    codes = np.full((workers, tasks), mechanism.alphabet.size)
    codes[answers.worker, answers.task] = answers.value
    drawn = mechanism.perturb_rounds(codes.ravel(), rounds, seeded(seed)).reshape(rounds, workers, tasks)
    found = []
    for one in drawn:
        worker, task = np.nonzero(one < len(channel.report_alphabet.names))
        found.append(Reports(task, worker, one[worker, task], answers.tasks, answers.workers, channel.report_alphabet))
    return found


@pytest.fixture(scope="module")
def crowd():
    """A crowd that answers half of the cells."""
    return categorical_crowd(workers=60, tasks=150, labels=LABELS, sparsity=0.5, source=seeded(3))


@pytest.mark.parametrize("participation", ["protected", "public"])
def test_every_cell_has_the_counts_of_its_rounds(crowd, participation):
    """The joined symbol of a cell lists exactly the symbols that its rounds have, NULL where there is none."""
    mechanism = Memoised(alphabet=LABELS, epsilon=3.0, report_epsilon=1.5, participation=participation)
    rounds = rounds_of(mechanism, crowd.answers, 2, 1)
    joined, channel = join_rounds(rounds, mechanism.tables)
    names = np.full((2, len(crowd.answers.tasks), len(crowd.answers.workers)), "NULL", dtype=object)
    for names_of_round, one in zip(names, rounds, strict=True):
        names_of_round[one.task, one.worker] = np.array(LABELS.names, dtype=object)[one.value]
    order = {name: code for code, name in enumerate(mechanism.channel().outputs)}

    for task, worker, value in list(zip(joined.task, joined.worker, joined.value, strict=True))[:500]:
        pair = sorted(names[:, task, worker], key=lambda name: order.get(name, 9))
        assert joined.alphabet.names[value] == '["' + '", "'.join(pair) + '"]'
    assert len(joined) == (names != "NULL").any(axis=0).sum()
    assert joined.alphabet == channel.report_alphabet


def error_rate(crowd, reports, channel):
    """Share of wrong truths."""
    return float((DawidSkene().fit(reports, channel=channel).truth != crowd.truth).mean())


def test_inference_reads_one_report_and_the_joint_of_several(crowd):
    """The product channel reads one round; six rounds through the joint table have half the errors."""
    mechanism = Memoised(alphabet=LABELS, epsilon=4.0, report_epsilon=1.0)
    rounds = rounds_of(mechanism, crowd.answers, 6, 2)
    one = error_rate(crowd, rounds[0], mechanism.channel())
    six = error_rate(crowd, *join_rounds(rounds, mechanism.tables))

    assert six < 0.5 * one
    assert (rounds[0].value.tolist(), mechanism.channel()) == (
        join_rounds(rounds[:1], mechanism.tables)[0].value.tolist(),
        join_rounds(rounds[:1], mechanism.tables)[1],
    )


def test_rounds_that_do_not_fit_together_are_refused(crowd):
    """Other workers, no rounds, too many rounds, and cells of public participation in some rounds only."""
    mechanism = Memoised(alphabet=LABELS, epsilon=3.0, report_epsilon=1.5, participation="public")
    rounds = rounds_of(mechanism, crowd.answers, 2, 1)
    renamed = replace(rounds[1], workers=[f"other {k}" for k in range(len(rounds[1].workers))])
    fewer = replace(rounds[1], task=rounds[1].task[1:], worker=rounds[1].worker[1:], value=rounds[1].value[1:])

    with pytest.raises(ReportsError, match="same tasks"):
        join_rounds([rounds[0], renamed], mechanism.tables)
    with pytest.raises(ReportsError, match="every round"):
        join_rounds([rounds[0], fewer], mechanism.tables)
    with pytest.raises(SettingsError, match="joint table"):
        join_rounds([], mechanism.tables)
    with pytest.raises(SettingsError, match="joint table"):
        join_rounds([rounds[0]] * 99, mechanism.tables)

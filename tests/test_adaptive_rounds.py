"""Campaigns in rounds: where the next round cuts, and all rounds read as one."""

import numpy as np
import pytest

from crowdveil import Categories, Channel, ChannelTable, Gaussian, QuantizedResponse, Reports, Scale
from crowdveil.adaptive_rounds import Round, join_rounds, next_thresholds, threshold_table
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd, perturb_cells

SCALE = Scale(0, 9)
PUBLIC = Gaussian(prior_mean=4.0, prior_deviation=2.0)


def cut(at: int, epsilon: float = 2.0) -> Channel:
    """Return quantized response with one cut."""
    return QuantizedResponse(alphabet=SCALE, epsilon=epsilon, cuts=(at,)).channel()


def cuts_at(values: list[float], most: int = 12) -> list[int]:
    """Return the cuts of tasks with these estimates."""
    return list(next_thresholds(np.arange(len(values)), np.array(values), SCALE, most=most).values())


def test_every_task_is_cut_next_to_its_estimate() -> None:
    """The cut c stands between c - 1 and c: near 0 that is 1, near 9 it is 9, else next to the estimate."""
    assert [1, 1, 3, 4, 9, 9] == cuts_at([0.0, 0.9, 2.6, 3.4, 8.4, 9.0])
    assert ["a", "b"] == list(next_thresholds(np.array(["a", "b"]), np.zeros(2), SCALE))


def test_unknown_tasks_are_cut_at_the_median() -> None:
    """A task without a report takes the middle of the others, and of the scale where nothing is known at all."""
    assert [1, 3, 8, 3] == cuts_at([0.0, 2.4, 7.4, np.nan])
    assert [5, 5] == cuts_at([np.nan, np.nan])


def test_many_cuts_are_rounded_to_few() -> None:
    """No more cuts than asked for, each task's as near as these allow."""
    estimates = np.linspace(0, 9, 91).tolist()

    cuts = cuts_at(estimates, most=3)

    assert len(set(cuts)) == 3
    assert sorted(cuts) == cuts
    assert max(abs(cut - own) for cut, own in zip(cuts, cuts_at(estimates), strict=True)) <= 2
    assert len(set(cuts_at(estimates))) == 9


def test_cuts_need_an_order() -> None:
    """Labels in no order and no cut at all are refused."""
    for alphabet, most in ((Categories(("A", "B")), 3), (SCALE, 0)):
        with pytest.raises(SettingsError, match="thresholds need"):
            next_thresholds(np.arange(2), np.zeros(2), alphabet, most=most)
    with pytest.raises(SettingsError, match="cut for every task"):
        threshold_table(SCALE, 1.0, {})


def test_each_channel_of_a_round_keeps_epsilon() -> None:
    """Every task's channel is quantized response at its cut, with the epsilon and participation asked for."""
    table = threshold_table(SCALE, 1.5, {"a": 4, "b": 1, "c": 4}, participation="public")

    assert ["0", "0..3"] == [channel.outputs[0] for channel in table.channels]
    assert {"a": 1, "b": 0, "c": 1} == dict(table.tasks)
    assert table.guarantee.epsilon == pytest.approx(1.5, abs=1e-9)
    assert table.guarantee.participation == "public"
    assert all(channel.epsilon <= 1.5 for channel in table.channels)


def two_rounds() -> list[Round]:
    """Return 60 workers through one cut for all 20 tasks, and 40 through cuts that differ by task and by worker."""
    crowd = numeric_crowd(
        workers=100, tasks=20, sparsity=0.5, truth=lambda rng, n: rng.normal(4, 2, n), source=seeded(1)
    )
    by_task = threshold_table(SCALE, 2.0, {str(task): 2 + task % 3 for task in range(1, 21)})
    second = ChannelTable(
        channels=(*by_task.channels, cut(7)),
        choice=((0, 1, 2), (3, 3, 3)),
        workers={str(worker): worker % 2 for worker in range(61, 101)},
        tasks=by_task.tasks,
    )
    rounds = []
    for first, last, channel in ((0, 60, cut(3)), (60, 100, second)):
        inside = (crowd.answers.worker >= first) & (crowd.answers.worker < last)
        part = Reports(
            crowd.answers.task[inside],
            crowd.answers.worker[inside] - first,
            crowd.answers.value[inside],
            crowd.answers.tasks,
            crowd.answers.workers[first:last],
            SCALE,
        )
        rounds.append(Round(reports=perturb_cells(part, channel, seeded(last)), channel=channel))
    return rounds


def test_joined_rounds_hold_every_report_and_its_channel() -> None:
    """Each cell has the report of its round, and the joint table gives it the very channel it went through."""
    rounds = two_rounds()

    joined = join_rounds(rounds)

    table = joined.channel
    assert isinstance(table, ChannelTable)
    assert len(joined.reports) == sum(len(one.reports) for one in rounds)
    assert [str(name) for name in range(1, 101)] == [str(name) for name in joined.reports.workers]
    said = {}
    for one in (*rounds, joined):
        sent, names = one.reports, one.reports.alphabet.names  # type: ignore[union-attr]
        cells = {
            (str(sent.tasks[j]), str(sent.workers[i])): names[y]
            for j, i, y in zip(sent.task.tolist(), sent.worker.tolist(), sent.value.tolist(), strict=True)
        }
        assert one is not joined or cells == said
        said |= cells
    own = rounds[1].channel
    assert isinstance(own, ChannelTable)
    for task in range(1, 21):
        for worker in range(1, 101):
            through = table.channels[table.choice[table.workers[str(worker)]][table.tasks[str(task)]]]
            went = own.channels[own.choice[worker % 2][own.tasks[str(task)]]] if worker > 60 else cut(3)
            assert through.outputs == went.outputs
            assert through.rows == went.rows
    # The first round's cut at 3 is one of the second's too.
    assert len(table.channels) == 4


def test_tasks_in_another_order_are_matched_by_name() -> None:
    """A round that lists the tasks backwards joins to the same estimate."""
    first, second = two_rounds()
    sent = second.reports
    backwards = Reports(19 - sent.task, sent.worker, sent.value, sent.tasks[::-1].copy(), sent.workers, sent.alphabet)

    straight, turned = (
        join_rounds([first, Round(reports=reports, channel=second.channel)]) for reports in (sent, backwards)
    )

    np.testing.assert_array_equal(straight.reports.task, turned.reports.task)
    np.testing.assert_array_equal(straight.reports.value, turned.reports.value)


def test_what_does_not_belong_together_is_refused() -> None:
    """No round, other tasks, a worker of two rounds and reports in other symbols are refused."""
    first, second = two_rounds()
    fewer = Reports([0], [0], [0], np.array([1]), np.array([500]), first.reports.alphabet)

    with pytest.raises(SettingsError, match="nothing to join"):
        join_rounds([])
    with pytest.raises(ReportsError, match="round 2 is not"):
        join_rounds([first, Round(reports=fewer, channel=cut(3))])
    with pytest.raises(ReportsError, match="one round only"):
        join_rounds([first, first])
    with pytest.raises(ReportsError, match="channel's symbols"):
        join_rounds([first, Round(reports=second.reports, channel=cut(3))])


@pytest.mark.parametrize("name", [" r1a", "r1a\u00a0", "r1\u200ba"])
def test_a_worker_with_a_confusable_name_is_refused(name: str) -> None:
    """A worker who reports again, the name written with a space or an invisible character, is not taken for another."""
    tasks, labels = np.array(["t"]), cut(3).report_alphabet
    one, other = (
        Round(reports=Reports([0], [0], [0], tasks, np.array([worker]), labels), channel=cut(3))
        for worker in ("r1a", name)
    )

    with pytest.raises(ReportsError, match="must differ in visible characters"):
        join_rounds([one, other])


def test_one_round_is_the_campaign_itself() -> None:
    """A campaign of one round is fitted as if it had not been joined."""
    first, _ = two_rounds()

    joined = join_rounds([first])

    plain, through = (PUBLIC.fit(one.reports, channel=one.channel) for one in (first, joined))
    np.testing.assert_allclose(through.truth, plain.truth, atol=1e-9)

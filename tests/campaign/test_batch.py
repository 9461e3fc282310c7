"""Batches of a relay: all reports, in uniformly random order, and nothing else."""

from collections import Counter
from itertools import permutations

import pytest

from crowdveil.campaign import batch as module
from crowdveil.campaign.batch import make_batches, parse_batch
from crowdveil.campaign.document import Campaign, Relay
from crowdveil.campaign.sealed_body import part_bytes
from crowdveil.errors import CampaignError
from tests.campaign.builders import PUBLIC_KEY, build_campaign
from tests.chi_square import chi_square_p_value

DRAWS = 6_000
FALSE_ALARM = 1e-6
"""Probability that a right shuffle fails the test of orders."""


def relayed(unit: str, *, least_batch: int = 2, slots: int = 6, tasks: int = 2) -> Campaign:
    """Return a campaign with a relay whose key nobody has."""
    relay = Relay("The library", PUBLIC_KEY, least_batch, unit)  # type: ignore[arg-type]
    return build_campaign(slots=slots, tasks=tasks, content={"relay": relay}).campaign


def sealed(campaign: Campaign, count: int) -> list[bytes]:
    """Return bytes in place of sealed reports, each part of which names its worker and task."""
    size = part_bytes(campaign)
    parts = range(campaign.sent_bytes // size)
    return [b"".join((bytes((worker, part)) * size)[:size] for part in parts) for worker in range(count)]


@pytest.mark.parametrize("unit", ["report", "cell"])
def test_a_batch_has_every_report_once(unit: str) -> None:
    """The parts of each task are those of all reports; the header has the number of reports and no more."""
    campaign = relayed(unit)
    (data,) = make_batches(campaign, sealed(campaign, 5))
    columns = parse_batch(campaign, data)

    head = b'{"campaign":"%s","format":"crowdveil-batch/1","reports":5}' % campaign.name.encode()
    assert head == data.split(b"\n")[0]
    assert (1 if unit == "report" else 2) == len(columns)
    for task, column in enumerate(columns):
        assert [(worker, task) for worker in range(5)] == sorted((part[0], part[1]) for part in column)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["report", "cell"])
def test_orders_are_uniform_and_independent_by_task(unit: str) -> None:
    """Over 6,000 batches of 3 reports, all orders of the last task given those of the first are equally frequent."""
    campaign = relayed(unit)
    reports = sealed(campaign, 3)
    seen: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for _ in range(DRAWS):
        columns = parse_batch(campaign, make_batches(campaign, reports)[0])
        seen[tuple(tuple(part[0] for part in column) for column in columns)] += 1
    orders = list(permutations(range(3)))
    cases = [(one,) for one in orders] if unit == "report" else [(one, other) for one in orders for other in orders]

    assert chi_square_p_value([seen[case] for case in cases], [1 / len(cases)] * len(cases)) > FALSE_ALARM
    assert DRAWS == sum(seen[case] for case in cases)


def test_a_shuffler_that_keeps_the_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of orders rejects a relay that forwards reports as they came."""
    campaign = relayed("report")

    class Keeping:
        def shuffle(self, _: list[bytes]) -> None:
            """Leave the order as it is."""

    monkeypatch.setattr(module.secrets, "SystemRandom", Keeping)
    first = Counter(parse_batch(campaign, make_batches(campaign, sealed(campaign, 3))[0])[0][0][0] for _ in range(200))

    assert chi_square_p_value([first[worker] for worker in range(3)], [1 / 3] * 3) < FALSE_ALARM


def test_fewer_reports_than_the_least_batch_are_held_back() -> None:
    """Below the least batch there is no batch, whatever the campaign's other least number."""
    campaign = relayed("report", least_batch=4)

    assert [] == make_batches(campaign, sealed(campaign, 3))
    assert 1 == len(make_batches(campaign, sealed(campaign, 4)))


def test_large_campaigns_are_spread_over_batches_that_keep_the_least_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the largest size there are several batches, and each has the least number of reports."""
    campaign = relayed("report", least_batch=2)
    monkeypatch.setattr(module, "MAX_BATCH_BYTES", campaign.sent_bytes)
    found = [parse_batch(campaign, data) for data in make_batches(campaign, sealed(campaign, 5))]

    assert [2, 3] == sorted(len(columns[0]) for columns in found)
    assert list(range(5)) == sorted(part[0] for columns in found for part in columns[0])


def test_other_batches_are_refused() -> None:
    """A batch of one, of another campaign, of another length, or with another header is refused."""
    campaign, other = relayed("report"), relayed("report")
    (data,) = make_batches(campaign, sealed(campaign, 2))
    head, _, parts = data.partition(b"\n")
    one = head.replace(b'"reports":2', b'"reports":1') + b"\n" + parts[: campaign.sent_bytes]

    foreign = make_batches(other, sealed(other, 2))[0]
    for damaged in (one, data[:-1], data + b"\0", parts, head, b"{}\n" + parts, b"", foreign):
        with pytest.raises(CampaignError):
            parse_batch(campaign, damaged)

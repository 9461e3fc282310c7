"""Deletion on the day that a campaign's document names, with a clock that the tests set."""

import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from crowdveil.campaign.document import EarlierRound
from crowdveil.campaign.folder import CampaignFolder
from crowdveil.errors import SettingsError
from crowdveil.service.curator.results import Results
from crowdveil.service.problems import Problem
from crowdveil.service.registration import register
from crowdveil.service.release import Retention, purge_due
from crowdveil.service.schema import campaigns, parts, reports, tokens
from crowdveil.service.store import Store
from tests.campaign.builders import BuiltCampaign, build_campaign

CLOSES = date(2030, 6, 10)
DUE = date(2030, 7, 10)
SECONDS_TO_WAIT = 20.0


class Calendar:
    """Day that a test sets."""

    def __init__(self) -> None:
        self.day = CLOSES

    def __call__(self) -> date:
        """The day that was set."""
        return self.day


@pytest.fixture
def calendar() -> Calendar:
    """A calendar that shows the last day of the campaign."""
    return Calendar()


@pytest.fixture
def built() -> BuiltCampaign:
    """A campaign whose reports are deleted 30 days after its last day."""
    return build_campaign(closes=CLOSES)


@pytest.fixture
def store(database_url: str, built: BuiltCampaign, calendar: Calendar, tmp_path: Path) -> Iterator[Store]:
    """A store that holds the campaign with two reports."""
    opened = Store.open(database_url, today=calendar)
    register(opened, CampaignFolder(built.write(tmp_path / "campaign")))
    for slot in (0, 1):
        opened.store_report(built.campaign.digest, built.tokens[slot], f"{slot:032x}", b"\0\1\2\3")
    yield opened
    opened.close()


def rows(store: Store) -> list[int]:
    """The numbers of reports, tokens, parts and documents in the database."""
    with store.engine.connect() as connection:
        counts = [select(func.count()).select_from(table) for table in (reports, tokens, parts)]
        documents = select(func.count(campaigns.c.document))
        return [connection.execute(query).scalar_one() for query in (*counts, documents)]


def test_nothing_is_deleted_before_the_day_and_everything_on_it(store: Store, calendar: Calendar) -> None:
    """An open campaign whose day has come is closed and purged; the day before, nothing happens."""
    calendar.day = DUE - timedelta(1)
    assert 0 == purge_due(store)
    assert [2, 3, 1, 1] == rows(store)

    calendar.day = DUE

    assert 1 == purge_due(store)
    assert [0, 0, 0, 0] == rows(store)
    assert 0 == purge_due(store)


def test_a_campaign_without_the_promise_stays(tmp_path: Path) -> None:
    """Without `purge_after_days` nothing is ever deleted."""
    built = build_campaign(closes=CLOSES, content={"purge_after_days": None})
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}", today=lambda: date.max)
    register(store, CampaignFolder(built.write(tmp_path / "campaign")))

    assert 0 == purge_due(store)
    assert "open" == store.state(built.campaign.digest)
    store.close()


@pytest.mark.parametrize(
    ("closes", "days", "due"),
    [
        (CLOSES, 30, DUE),
        (CLOSES, 0, CLOSES + timedelta(1)),
        (CLOSES, 1, CLOSES + timedelta(1)),
        (date(9999, 12, 30), 3650, date.max),
        (CLOSES, None, None),
    ],
)
def test_the_day_of_deletion(closes: date, days: int | None, due: date | None) -> None:
    """It is that many days after the last day, and never the last day itself."""
    assert due == build_campaign(closes=closes, content={"purge_after_days": days}).campaign.purge_day


@pytest.mark.slow
def test_results_and_documents_leave_the_memory_of_every_process(
    store: Store, built: BuiltCampaign, calendar: Calendar, database_url: str
) -> None:
    """A process that did not purge itself forgets the campaign and its results at its next look."""
    digest = built.campaign.digest
    other = Store.open(database_url, today=calendar)
    results = Results(other)
    store.close_campaign(digest)
    results.compute(digest)
    calendar.day = DUE
    assert 1 == purge_due(store)

    assert 0 == purge_due(other)

    assert None is results.find(digest)
    with pytest.raises(Problem, match="purged"):
        other.campaign(digest)
    other.close()


def test_a_running_service_purges_when_the_day_comes(store: Store, calendar: Calendar) -> None:
    """The thread of the service looks at its start and again and again, and ends when it is told to."""
    retention = Retention(store, seconds=0.01)
    time.sleep(0.05)
    assert 2 == rows(store)[0]
    calendar.day = DUE
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while rows(store)[3] and time.monotonic() < deadline:
        time.sleep(0.01)
    retention.close()

    assert [0, 0, 0, 0] == rows(store)


def test_a_later_round_is_not_released_without_the_rounds_before(store: Store, tmp_path: Path) -> None:
    """The curator's page has the reports of one round only: it names the folder with the others, and infers nothing."""
    earlier = (EarlierRound("A" * 43, 2, 3, 1),)
    later = build_campaign(closes=CLOSES, content={"earlier": earlier})
    register(store, CampaignFolder(later.write(tmp_path / "later")))
    for slot in (0, 1):
        store.store_report(later.campaign.digest, later.tokens[slot], f"{slot + 9:032x}", b"\0\1\2\3")
    store.close_campaign(later.campaign.digest)

    with pytest.raises(SettingsError, match="with the reports of the rounds before it"):
        Results(store).compute(later.campaign.digest)

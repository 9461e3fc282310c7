"""Purges and the promised day of deletion: every value leaves the files of both databases, or it is said why not."""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import func, select, text
from sqlalchemy.exc import OperationalError

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.pages.results import ResultCache
from crowdveil.campaign.rules.token import token_hash
from crowdveil.campaign.service import schema
from crowdveil.campaign.service.campaign_registration import register_campaign
from crowdveil.campaign.service.export_and_purge import PurgeThread, purge_due_campaigns
from crowdveil.campaign.service.problems import Problem
from crowdveil.campaign.service.schema import campaigns, engine_of, failure_kind, metadata, parts, reports, tokens
from crowdveil.campaign.service.store import Purged, Store
from crowdveil.cli import main
from crowdveil.cli.campaign.serve import database_errors_as_refusals
from crowdveil.errors import SettingsError
from tests.campaign.builders import BuiltCampaign, build_campaign
from tests.campaign.service.sql_server import SqlServer

CELLS, SLOTS = 64, 20
SECONDS_TO_WAIT = 60.0
STATISTICS = text("SELECT tablename, attname FROM pg_stats WHERE schemaname = 'public'")


class Filled:
    """A store with reports of a campaign, and the values that a purge must remove."""

    def __init__(self, url: str, folder: Path, store: Store) -> None:
        built = build_campaign(tasks=CELLS, slots=SLOTS)
        self.url, self.store, self.digest = url, store, built.campaign.digest
        self.file = built.write(folder / "campaign") / "campaign.json"
        register_campaign(store, CampaignFolder(self.file.parent))
        with store.engine.connect() as connection:
            self.secrets = [bytes(connection.execute(select(campaigns.c.receipt_key)).scalar_one())]
        for token in built.tokens:
            body = bytes(secrets.choice(b"\0\1\2") for _ in range(CELLS))
            report_id = secrets.token_hex(16)
            store.store_report(self.digest, token, report_id, body)
            self.secrets += [body, bytes.fromhex(report_id), token_hash(self.digest, token)]

    def held(self) -> set[bytes]:
        """The values that files of the database hold."""
        if self.url.startswith("sqlite"):
            paths = Path(self.url.removeprefix("sqlite:///")).parent.glob("reports.sqlite*")
        else:
            with self.store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("CHECKPOINT"))
                where = "current_setting('data_directory') || '/base/' || oid"
                query = text(f"SELECT {where} FROM pg_database WHERE datname = current_database()")
                paths = Path(connection.execute(query).scalar_one()).iterdir()
        data = b"\n".join(path.read_bytes() for path in paths if path.is_file())
        return {value for value in self.secrets if value in data}

    def purge(self) -> Purged:
        """Delete the rows and rewrite the files."""
        deleted = self.store.purge(self.digest)
        self.store.rewrite_due_files()
        return deleted


@pytest.fixture
def filled(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Filled]:
    """A closed campaign with reports, in each database; locks are waited for briefly."""
    monkeypatch.setattr(schema, "LOCK_SECONDS", 0.1)
    store = Store.open(database_url)
    made = Filled(database_url, tmp_path, store)
    store.close_and_count_reports(made.digest)
    yield made
    store.close()


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


@contextmanager
def reader(url: str, statement: str = "SELECT count(*) FROM report", **options: str) -> Iterator[None]:
    """Another connection in a transaction that has read, and does not end."""
    engine = engine_of(url)
    with engine.connect().execution_options(**options) as connection:
        connection.execute(text(statement))
        yield
    engine.dispose()


@pytest.mark.slow
def test_a_purge_leaves_no_value_in_the_files(filled: Filled) -> None:
    """Bodies, report ids, hashes of tokens and the key of receipts are in the files before, and in none after."""
    assert set(filled.secrets) == filled.held()

    filled.purge()

    assert set() == filled.held()


@pytest.mark.slow
def test_postgresql_makes_no_statistics(sql_server: SqlServer, tmp_path: Path) -> None:
    """ANALYZE, which PostgreSQL also runs by itself, copies no value of any column of the service."""
    with sql_server.database() as url:
        store = Store.open(url)
        Filled(url, tmp_path, store)
        with store.engine.begin() as connection:
            connection.execute(text("ANALYZE"))
            assert [] == connection.execute(STATISTICS).all()
            bounded = "SELECT count(*) FROM pg_attribute WHERE attstattarget = 0 AND attnum > 0"
            columns = sum(len(table.columns) for table in metadata.tables.values())
            assert columns == connection.execute(text(bounded)).scalar_one()
        store.close()


@pytest.mark.slow
def test_an_old_transaction_keeps_no_deleted_row(sql_server: SqlServer, tmp_path: Path) -> None:
    """A transaction that could still see deleted rows, and locks no table of the service, does not keep them."""
    with sql_server.database() as url:
        store = Store.open(url)
        filled = Filled(url, tmp_path, store)
        with reader(url, "SELECT 1", isolation_level="REPEATABLE READ"):
            store.close_and_count_reports(filled.digest)
            filled.purge()

            assert set() == filled.held()
        store.close()


@pytest.mark.slow
def test_a_purge_that_a_reader_prevents_says_so_and_is_repeated(filled: Filled) -> None:
    """While another connection reads, the rows are deleted and the rewrite is refused; afterwards a repeat succeeds."""
    with reader(filled.url):
        with pytest.raises(SettingsError, match="that another connection uses"):
            filled.purge()
        assert set() != filled.held()

    assert Purged(SLOTS, 0, 0, 0) == filled.purge()
    assert set() == filled.held()


@pytest.mark.slow
def test_the_service_repeats_a_purge_until_it_is_complete(filled: Filled, caplog: pytest.LogCaptureFixture) -> None:
    """The thread of the service tries again while a transaction is open, also one of a process that was restarted."""
    with reader(filled.url):
        filled.store.purge(filled.digest)
        retention = PurgeThread(filled.store, seconds=0.01)
        until(lambda: "purge failed" in caplog.text)
    until(lambda: not filled.held())
    retention.close()

    assert 0 == purge_due_campaigns(filled.store)


@pytest.mark.slow
def test_a_closing_that_a_reader_prevents_is_repeated(filled: Filled) -> None:
    """A campaign stays closed whose files could not be rewritten; the service or a repeat rewrites them."""
    with reader(filled.url), pytest.raises(SettingsError, match="order of arrival"):
        filled.store.close_and_count_reports(filled.digest)

    assert SLOTS == filled.store.close_and_count_reports(filled.digest)


@pytest.mark.slow
def test_a_deletion_does_not_wait_for_a_locked_row(sql_server: SqlServer, tmp_path: Path) -> None:
    """In PostgreSQL the deletion itself ends, too, while another transaction holds the row of the campaign."""
    with sql_server.database() as url, pytest.MonkeyPatch.context() as patched:
        patched.setattr(schema, "LOCK_SECONDS", 0.1)
        store = Store.open(url)
        filled = Filled(url, tmp_path, store)
        store.close_and_count_reports(filled.digest)
        with reader(filled.url, "SELECT 1 FROM campaign FOR SHARE"), pytest.raises(OperationalError) as refused:
            filled.purge()

        assert "busy" == failure_kind(refused.value)
        assert SLOTS == filled.purge().reports
        store.close()


def test_the_command_says_what_is_left_and_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 75 while another connection reads, and 0 for the repeat, which prints the number of reports."""
    monkeypatch.setattr(schema, "LOCK_SECONDS", 0.1)
    url = f"sqlite:///{tmp_path / 'reports.sqlite'}"
    store = Store.open(url)
    filled = Filled(url, tmp_path, store)
    store.close_and_count_reports(filled.digest)
    words = ["campaign", "purge", str(filled.file), "--database", url, "--yes"]
    with reader(filled.url):
        refused = CliRunner().invoke(main, words)
    repeated = CliRunner().invoke(main, words)

    assert 75 == refused.exit_code
    assert "until then they show deleted data" in refused.stderr
    assert "run the command again" in refused.stderr
    assert (0, True) == (repeated.exit_code, f"all: {SLOTS}" in repeated.stdout)
    assert set() == filled.held()
    store.close()


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """A command on a full disk says so, and does not ask whether the server is running."""
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    with store.engine.begin() as connection:
        connection.execute(text("PRAGMA max_page_count = 1"))
        with pytest.raises(SettingsError, match="got 'a full disk'") as refused, database_errors_as_refusals():
            connection.execute(text("CREATE TABLE large AS SELECT zeroblob(100000)"))

    assert "free disk space" in refused.value.hint
    store.close()


CLOSES = date(2030, 6, 10)
DUE = date(2030, 7, 10)


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
    register_campaign(opened, CampaignFolder(built.write(tmp_path / "campaign")))
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
    assert 0 == purge_due_campaigns(store)
    assert [2, 3, 1, 1] == rows(store)

    calendar.day = DUE

    assert 1 == purge_due_campaigns(store)
    assert [0, 0, 0, 0] == rows(store)
    assert 0 == purge_due_campaigns(store)


def test_a_campaign_without_the_promise_stays(tmp_path: Path) -> None:
    """Without `purge_after_days` nothing is ever deleted."""
    built = build_campaign(closes=CLOSES, content={"purge_after_days": None})
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}", today=lambda: date.max)
    register_campaign(store, CampaignFolder(built.write(tmp_path / "campaign")))

    assert 0 == purge_due_campaigns(store)
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
    results = ResultCache(other)
    store.close_and_count_reports(digest)
    results.get(digest)
    calendar.day = DUE
    assert 1 == purge_due_campaigns(store)

    assert 0 == purge_due_campaigns(other)

    assert None is results.computed_result_or_none(digest)
    for read in (other.campaign, lambda digest: other.tasks(digest, 0)):
        with pytest.raises(Problem, match="purged"):
            read(digest)
    other.close()


def test_a_running_service_purges_when_the_day_comes(store: Store, calendar: Calendar) -> None:
    """The thread of the service looks at its start and again and again, and ends when it is told to."""
    retention = PurgeThread(store, seconds=0.01)
    time.sleep(0.05)
    assert 2 == rows(store)[0]
    calendar.day = DUE
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while rows(store)[3] and time.monotonic() < deadline:
        time.sleep(0.01)
    retention.close()

    assert [0, 0, 0, 0] == rows(store)

"""Receipts and stored reports agree after kill -9, a restart of the database, and a full disk."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from benchmarks.service_harness import Delivery, ServiceProcess, deliver, differences, make_load
from sqlalchemy import event, text

from crowdveil.campaign.folder import CampaignFolder
from crowdveil.service.problems import Problem
from crowdveil.service.registration import register
from crowdveil.service.store import Store
from tests.campaign.builders import build_campaign
from tests.service.sql_server import SqlServer

pytestmark = pytest.mark.slow


async def send_with_kills(folder: Path, database: str, *, reports: int, kills: int) -> list[str]:
    """Send reports while the service is killed; return what contradicts the receipts."""
    load = make_load(folder / "campaign", slots=reports, cells=20)
    service = ServiceProcess(load.folder, folder / "log", database=database)
    delivery = Delivery()
    sending = asyncio.create_task(deliver(load.requests, service.port, delivery, clients=20, wanted=lambda: True))
    for number in range(kills):
        while len(delivery.receipts) < reports * (number + 1) // (kills + 1) and not sending.done():
            await asyncio.sleep(0.002)
        service.kill()
        service = await asyncio.to_thread(
            ServiceProcess, load.folder, folder / "log", database=database, port=service.port
        )
    await sending
    service.stop()
    assert reports == len(delivery.receipts)
    assert delivery.broken >= kills
    return differences(load, delivery.receipts, database)


def test_a_killed_service_keeps_what_it_receipted(database_url: str, tmp_path: Path) -> None:
    """After kill -9 twice in between, every receipt has one equal report, and none is stored twice or half."""
    assert [] == asyncio.run(send_with_kills(tmp_path, database_url, reports=300, kills=2))


@pytest.mark.slow
def test_a_restarted_database_keeps_what_was_receipted(sql_server: SqlServer, tmp_path: Path) -> None:
    """While PostgreSQL restarts at once, reports are refused for now; afterwards all are stored once."""

    async def send_with_restart(database: str) -> tuple[list[str], Delivery]:
        load = make_load(tmp_path / "campaign", slots=300, cells=20)
        service = ServiceProcess(load.folder, tmp_path / "log", database=database)
        delivery = Delivery()
        sending = asyncio.create_task(deliver(load.requests, service.port, delivery, clients=20, wanted=lambda: True))
        while len(delivery.receipts) < 100:
            await asyncio.sleep(0.002)
        await asyncio.to_thread(sql_server.restart)
        await sending
        service.stop()
        return differences(load, delivery.receipts, database), delivery

    with sql_server.database() as database:
        found, delivery = asyncio.run(send_with_restart(database))

    assert [] == found
    assert 300 == len(delivery.receipts)
    assert delivery.refused > 0
    assert 0 == delivery.broken


@contextmanager
def full_database(store: Store) -> Iterator[None]:
    """SQLite that refuses further pages, as on a full disk."""
    with store.engine.connect() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
    store.engine.dispose()
    limits = [f"PRAGMA max_page_count={pages}"]

    def limit(connection: object, _: object) -> None:
        for pragma in limits:
            connection.execute(pragma)  # type: ignore[attr-defined]

    event.listen(store.engine, "connect", limit)
    yield
    limits[:] = [f"PRAGMA max_page_count={2**30}"]
    store.engine.dispose()


def test_a_full_disk_refuses_for_now_and_loses_nothing(tmp_path: Path) -> None:
    """On a full disk a report is refused as busy; with room again the same bytes are stored, and old receipts hold."""
    built = build_campaign(slots=400, tasks=64)
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register(store, CampaignFolder(built.write(tmp_path / "campaign")))
    digest, body = built.campaign.digest, bytes(64)
    reasons: dict[int, str] = {}
    receipts: dict[int, bytes] = {}
    with full_database(store):
        for slot in range(400):
            try:
                receipts[slot] = store.store_report(digest, built.tokens[slot], f"{slot:032x}", body)
            except Problem as problem:
                reasons[slot] = problem.name
                if len(reasons) == 3:
                    break

    assert ["busy"] * 3 == list(reasons.values())
    for slot in reasons:
        assert store.store_report(digest, built.tokens[slot], f"{slot:032x}", body)
    for slot, receipt in receipts.items():
        assert receipt == store.receipt(digest, built.tokens[slot], f"{slot:032x}")
    with store.engine.connect() as connection:
        assert len(receipts) + 3 == connection.execute(text("SELECT count(*) FROM report")).scalar_one()
    store.close()

"""Backups: a copy of a running service is complete, private and new, and devices mend what came later."""

import os
from pathlib import Path

import pytest

from crowdveil.campaign.service.backup import write_backup
from crowdveil.campaign.service.problems import Problem
from crowdveil.campaign.service.store import Store
from crowdveil.errors import SettingsError
from tests.campaign.builders import BuiltCampaign

BODY, OTHER = bytes(4), bytes((1, 0, 0, 0))


def test_a_backup_of_a_running_service_has_every_report(built: BuiltCampaign, store: Store, tmp_path: Path) -> None:
    """What was receipted before the backup is in it, though the file of the database alone does not hold it."""
    digest, copy = built.campaign.digest, tmp_path / "monday.sqlite"
    receipts = [store.store_report(digest, built.tokens[slot], f"{slot:032x}", BODY) for slot in range(2)]
    write_backup(store.engine, copy)
    store.store_report(digest, built.tokens[2], f"{2:032x}", BODY)

    again = Store.open(f"sqlite:///{copy}")
    assert receipts == [again.receipt(digest, built.tokens[slot], f"{slot:032x}") for slot in range(2)]
    assert "unused" == again.link_state(digest, built.tokens[2])
    assert again.is_ready()
    again.close()
    assert 0o600 == os.stat(copy).st_mode & 0o777


def test_a_report_after_the_backup_is_sent_again(built: BuiltCampaign, store: Store, tmp_path: Path) -> None:
    """A service that went back to a backup stores the same report again, with the same receipt, and no other one."""
    digest, copy = built.campaign.digest, tmp_path / "monday.sqlite"
    write_backup(store.engine, copy)
    receipt = store.store_report(digest, built.tokens[0], f"{0:032x}", BODY)

    again = Store.open(f"sqlite:///{copy}")
    assert receipt == again.store_report(digest, built.tokens[0], f"{0:032x}", BODY)
    with pytest.raises(Problem, match="link-used"):
        again.store_report(digest, built.tokens[0], f"{1:032x}", OTHER)
    again.close()


def test_a_backup_replaces_nothing(store: Store, tmp_path: Path) -> None:
    """An existing file stays, and a folder that is absent is named."""
    held = tmp_path / "held.sqlite"
    held.write_text("dear")

    with pytest.raises(SettingsError, match="a backup is written into a new file"):
        write_backup(store.engine, held)
    with pytest.raises(SettingsError, match="must be writable"):
        write_backup(store.engine, tmp_path / "absent" / "x.sqlite")
    assert "dear" == held.read_text()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true"])
def test_a_database_in_memory_is_refused(url: str) -> None:
    """Each connection would have such a database for itself; the error names the rule."""
    with pytest.raises(SettingsError, match="a database of SQLite must be a file"):
        Store.open(url)

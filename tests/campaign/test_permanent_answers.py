"""Permanent answers on a device: drawn once, charged once, and never silently again."""

import json

import pytest

from crowdveil.campaign.permanent_answers import PermanentAnswers
from crowdveil.campaign.standalone.device import Refused, epsilon, read_ledger
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.memoised import Memoised
from crowdveil.privacy.audit.black_box import Pair
from crowdveil.privacy.audit.claims import audit_pairs
from crowdveil.randomness import seeded

TABLES = Memoised(alphabet=Categories(("no", "yes")), epsilon=2.0, report_epsilon=1.0).tables
ASKED = {"host": "grades.example.org", "question": "Is it good?", "title": "Grades"}


def permanents(home):
    """Symbols that are stored on the computer."""
    return [one["symbol"] for one in json.loads((home / "permanent.json").read_text())["answers"]]


def test_repeated_reports_keep_the_permanent_answer_and_are_charged_once(tmp_path):
    """Fifty reports, with changing answers, leave one stored symbol and one line of the ledger."""
    device = PermanentAnswers(tmp_path, seeded(1))
    device.report(TABLES, **ASKED, answer=1)
    first = permanents(tmp_path)

    reports = {device.report(TABLES, **ASKED, answer=day % 3) for day in range(50)}

    assert {0, 1, 2} == reports
    assert first == permanents(tmp_path)
    assert 1 == len(read_ledger(tmp_path))
    assert float(epsilon(read_ledger(tmp_path))) == pytest.approx(TABLES.permanent.epsilon, abs=1e-12)


def test_another_host_or_question_is_charged_on_its_own(tmp_path):
    """Each host and each question has its own permanent answer and its own line."""
    device = PermanentAnswers(tmp_path, seeded(1))
    for change in ({}, {"host": "other.example.org"}, {"question": "Is it long?"}):
        device.report(TABLES, **{**ASKED, **change}, answer=0)

    assert 3 == len(permanents(tmp_path)) == len(read_ledger(tmp_path))


def test_a_lost_file_is_not_replaced_without_agreement(tmp_path):
    """The ledger remembers the draw: reports stop, and a second draw that was agreed to is charged again."""
    device = PermanentAnswers(tmp_path, seeded(1))
    device.report(TABLES, **ASKED, answer=1)
    (tmp_path / "permanent.json").unlink()

    with pytest.raises(Refused, match="second draw"):
        device.report(TABLES, **ASKED, answer=1)
    assert not (tmp_path / "permanent.json").exists()

    device.report(TABLES, **ASKED, answer=1, second_draw=True)
    device.report(TABLES, **ASKED, answer=1)
    assert 2 == len(read_ledger(tmp_path))


def test_a_crash_between_store_and_ledger_is_charged_before_the_next_report(tmp_path):
    """A stored permanent answer whose line is missing gets it before anything is reported."""
    device = PermanentAnswers(tmp_path, seeded(1))
    device.report(TABLES, **ASKED, answer=1)
    (tmp_path / "ledger.json").unlink()

    device.report(TABLES, **ASKED, answer=1)

    assert 1 == len(read_ledger(tmp_path)) == len(permanents(tmp_path))


def test_other_tables_for_a_known_question_are_refused(tmp_path):
    """A second table on the same permanent answer is outside the certificate."""
    device = PermanentAnswers(tmp_path, seeded(1))
    device.report(TABLES, **ASKED, answer=1)
    other = Memoised(alphabet=Categories(("no", "yes")), epsilon=3.0, report_epsilon=1.0).tables

    with pytest.raises(Refused, match="another table"):
        device.report(other, **ASKED, answer=1)


def test_damaged_files_and_wrong_answers_are_refused(tmp_path):
    """A file that is not the store's own stops the device; an answer outside the alphabet stores nothing."""
    device = PermanentAnswers(tmp_path, seeded(1))
    with pytest.raises(SettingsError, match="codes"):
        device.report(TABLES, **ASKED, answer=3)
    assert not (tmp_path / "permanent.json").exists()

    (tmp_path / "permanent.json").write_bytes(b'{"answers":[{}],"format":"crowdveil-permanent/1"}')
    with pytest.raises(Refused, match="damaged"):
        device.report(TABLES, **ASKED, answer=1)


def repeated(answer, *, keep, reports=12):
    """Twelve reports of one worker; a device that does not keep the permanent answer draws it for each of them."""
    mechanism, source = Memoised(alphabet=TABLES.report.alphabet, epsilon=2.0, report_epsilon=1.0), seeded(answer)

    def draw(count):
        kept = TABLES.permanent.sample([answer] * count * (1 if keep else reports), source)
        kept = kept.repeat(reports) if keep else kept
        drawn = TABLES.instantaneous.sample(kept, source).reshape(count, reports)
        return (drawn == 0).sum(axis=1)[:, None]

    assert mechanism.tables.permanent.rows == TABLES.permanent.rows
    return draw


@pytest.mark.parametrize(("keep", "refuted"), [(True, False), (False, True)])
def test_audit_catches_a_device_that_draws_the_permanent_answer_again(keep, refuted):
    """Twelve reports of fresh permanent answers refute the claim for ever; those of a kept one do not."""
    pair = Pair("no against yes", repeated(0, keep=keep), repeated(1, keep=keep))

    audit = audit_pairs("reports", [pair], epsilon=TABLES.permanent.epsilon, draws=40_000)

    assert refuted == audit.refuted

"""Two rounds of a campaign, from its settings to the truths of all reports, with the Python device."""

import json
import shutil
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil.campaign.folder import CampaignFolder
from crowdveil.channels.channel_table import channel_indices
from crowdveil.folder.campaign.campaign_reports import AcceptedReport, write_campaign_reports
from crowdveil.standalone.checks import epsilon
from crowdveil.standalone.device import Device, read_ledger
from tests.cli.conftest import Run, rows

TASKS, WORKERS, EACH = 12, 10, 3
SETTINGS = """title = "Things"
question = "Which thing is it?"
consent = "Your answers are randomized on this device."
open = {{ from = 2020-01-01, until = 2099-12-31 }}
min_reports = 4
participation = "protected"
answers = {answers}
tasks = {{ file = "things.csv", per_worker = 3 }}
workers = {{ count = 10 }}
privacy = {{ mechanism = "{mechanism}", epsilon_per_answer = 2.0 }}
"""
FORMS = {
    "labels": ('{ labels = ["a", "b", "c", "d", "e"] }', "randomized-response"),
    "grades": ("{ scale = { low = 0, high = 10, step = 1 } }", "laplace"),
}
LATE = ("--until", "2099-12-31")


def ask(run: Run, form: str) -> None:
    """Make the first round, in which worker k must not get task k, and answer it with eight workers."""
    tasks = "".join(f"t{k},Thing {k},{k if k < WORKERS else ''}\n" for k in range(TASKS))
    Path("things.csv").write_text(f"id,text,not_for\n{tasks}")
    answers, mechanism = FORMS[form]
    Path("things.toml").write_text(SETTINGS.format(answers=answers, mechanism=mechanism))
    run("campaign", "new", "things.toml", "--out", "one", "--anyway")
    collect(run, "one", range(8))


def collect(run: Run, name: str, slots: Iterable[int]) -> None:
    """Invite, answer, close, collect and infer a round; the folders are `sent-NAME`, `got-NAME` and `found-NAME`."""
    run("campaign", "invite", name)
    links = [row["link"] for row in rows(Path(name, "links.csv"))]
    for slot in slots:
        with Device(links[slot], Path(f"home-{slot}"), Path(name)) as device:
            device.open()
            for cell, task in enumerate(device.tasks):
                names = device.channels(None)[cell].labels
                device.answer(cell, names[(task * 5 + slot // 4) % len(names)])
            device.sample()
            device.save_report(Path(f"sent-{name}"))
    run("campaign", "close", name, "--reports", f"sent-{name}")
    run("campaign", "collect", f"sent-{name}", "--campaign", f"{name}/campaign.json", "--out", f"got-{name}")
    run("infer", f"got-{name}/reports.csv", "--out", f"found-{name}")


def next_round(run: Run, before: str, out: str, *words: str, code: int = 0) -> Any:
    """Run `campaign next-round`."""
    return run("campaign", "next-round", before, f"found-{before}", *LATE, "--out", out, *words, "--json", code=code)


def cells(folder: str) -> set[tuple[str, str]]:
    """Return the assigned cells of a collection."""
    return {(row["task"], row["worker"]) for row in rows(Path(folder, "assignment.csv"))}


def files(folder: str) -> dict[str, bytes]:
    """Return the content of every file of a folder."""
    return {str(path): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


@pytest.mark.parametrize("form", FORMS)
def test_two_rounds_from_settings_to_truths(run: Run, folder: Path, form: str) -> None:
    """The second round asks new tasks of the same workers; truths, statement and page are those of all reports."""
    ask(run, form)
    kept = {name: files(name) for name in ("one", "got-one", "found-one")}
    made = json.loads(next_round(run, "one", "two").stdout)
    collect(run, "two", range(2, 10))
    first, both = cells("got-one"), cells("got-two")
    statement = json.loads(run("statement", "got-two", "--json").stdout)
    planned = json.loads(run("statement", "two/campaign.json", "--json").stdout)
    checked = json.loads(run("verify", "two/campaign.json", "--json").stdout)
    run(
        "report",
        "found-two",
        "--reports",
        "got-two/reports.csv",
        "--campaign",
        "two/campaign.json",
        "--out",
        "page.html",
    )
    page = Path("page.html").read_text("utf-8")
    campaign = CampaignFolder("two").campaign
    twice = [epsilon(read_ledger(Path(f"home-{slot}"))) for slot in range(2, 8)]
    once = [epsilon(read_ledger(Path(f"home-{slot}"))) for slot in (0, 1, 8, 9)]

    assert kept == {name: files(name) for name in kept}
    assert (2, True, TASKS, TASKS // 2) == (
        made["round"],
        1 <= len(made["groups"]) <= 12,
        sum(made["groups"]),
        made["tasks"],
    )
    assert (8 * EACH, 16 * EACH) == (len(first), len(both))
    assert first < both
    assert [] == [cell for cell in both if cell[0][1:] == cell[1][1:].lstrip("0").rjust(1, "0")]
    assert {f"w{slot:04}" for slot in range(WORKERS)} == {worker for _, worker in both}
    assert TASKS == len(rows("found-two/truths.csv"))
    for found in (statement, planned, checked):
        assert (2 * EACH, campaign.worker_guarantee_over_rounds.epsilon) == (
            found["answers_per_worker"],
            pytest.approx(found["epsilon_per_worker"], rel=1e-14),
        )
    assert 1 == sum("asked a task in two rounds" in sentence for sentence in checked["not_checked"])
    assert "This is round 2 of a campaign" in " ".join(statement["statement"])
    assert 1 == page.count("Which thing is it?")
    assert all(one <= Fraction(campaign.worker_guarantee_over_rounds.epsilon) for one in map(Fraction, twice))
    assert max(once) <= max(channel.epsilon for channel in campaign.channels) * EACH + 1e-9 < min(twice)


def test_a_third_round_counts_all_before_it(run: Run, folder: Path) -> None:
    """A third round follows the second, asks nobody a task twice, and promises the sum of three."""
    ask(run, "labels")
    next_round(run, "one", "two")
    collect(run, "two", range(8))
    made = json.loads(next_round(run, "two", "three", "--ask", "4", "--per-worker", "2").stdout)
    collect(run, "three", range(8))
    campaign = CampaignFolder("three").campaign

    assert (3, 4, 2, 8) == (made["round"], made["tasks"], made["most"], made["answers_over_rounds"])
    assert [CampaignFolder(name).campaign.name for name in ("one", "two")] == [one.campaign for one in campaign.earlier]
    assert 8 * 8 == len(cells("got-three"))
    assert pytest.approx(16, rel=1e-3) == made["epsilon_over_rounds"]
    assert made["epsilon_over_rounds"] <= 16


def test_the_least_certain_tasks_are_asked_first(run: Run, folder: Path) -> None:
    """With --ask the tasks with the least confidence are asked; who may have none of them gets the next ones."""
    ask(run, "labels")
    next_round(run, "one", "two", "--ask", "4", "--per-worker", "1")
    confidence = {row["task"]: float(row["confidence"]) for row in rows("found-one/truths.csv")}
    fourth = sorted(confidence.values())[3]
    doubtful = {task for task, value in confidence.items() if value <= fourth}
    had, asked = (
        [{f"t{task}" for task in CampaignFolder(name).tasks(slot)} for slot in range(WORKERS)]
        for name in ("one", "two")
    )

    for slot in range(WORKERS):
        assert asked[slot] <= doubtful or len(doubtful & (had[slot] | {f"t{slot}"})) >= 4
    assert any(tasks <= doubtful for tasks in asked)


def refused(result: Any) -> str:
    """Return the rule of a refusal."""
    return str(json.loads(result.stdout)["error"]["rule"])


def test_what_has_no_later_round_is_refused(run: Run, folder: Path) -> None:
    """A folder that exists, an open campaign, changed truths, other reports and too many tasks; nothing is written."""
    ask(run, "labels")
    Path("one/closed.json").rename("closed.json")
    assert "a round is closed before the next one" == refused(next_round(run, "one", "two", code=1))
    Path("closed.json").rename("one/closed.json")
    Path("two").mkdir()
    Path("two/mine.txt").write_text("mine")
    assert "new folder" in refused(next_round(run, "one", "two", code=1))
    shutil.rmtree("two")
    assert "10 or more tasks that are new" in refused(next_round(run, "one", "two", "--per-worker", "10", code=1))
    truths = Path("found-one/truths.csv").read_text("utf-8")
    Path("found-one/truths.csv").write_text(truths.replace("a,", "b,", 1), "utf-8")
    assert "unchanged" in next_round(run, "one", "two", code=1).stdout
    shutil.rmtree("found-one")
    run("infer", "got-one/reports.csv", "--no-certificate", "--out", "found-one")
    assert "inferred from all reports" in refused(next_round(run, "one", "two", code=1))
    reports = Path("got-one/reports.csv").read_text("utf-8")
    Path("got-one/reports.csv").write_text(reports + reports.splitlines()[-1] + "\n", "utf-8")
    assert "as `crowdveil campaign collect` wrote them" in refused(next_round(run, "one", "two", code=1))

    assert not Path("two").exists()


def test_reports_that_were_collected_before_the_closing_are_refused(run: Run, folder: Path) -> None:
    """Truths of the reports so far are no results of a round that was closed with more of them; those of all are."""
    ask(run, "labels")
    words = ("campaign", "collect", "sent-one", "--campaign", "one/campaign.json", "--out", "got-one")
    last = max(Path("sent-one").iterdir())
    Path("one/closed.json").rename("closed.json")
    last.rename("last")
    run(*words)
    run("infer", "got-one/reports.csv", "--out", "found-one")
    Path("closed.json").rename("one/closed.json")
    Path("last").rename(last)
    rule = refused(next_round(run, "one", "two", code=1))
    run(*words)
    run("infer", "got-one/reports.csv", "--out", "found-one")

    assert "the 8 that counted when the campaign was closed" in rule
    assert 2 == json.loads(next_round(run, "one", "two").stdout)["round"]


def test_a_collection_that_others_were_copied_over_is_refused(run: Run, folder: Path) -> None:
    """The record tells of all eight reports; with the files of an earlier collection of seven no round is made."""
    ask(run, "labels")
    last = max(Path("sent-one").iterdir())
    Path("one/closed.json").rename("closed.json")
    last.rename("last")
    run("campaign", "collect", "sent-one", "--campaign", "one/campaign.json", "--out", "old")
    Path("closed.json").rename("one/closed.json")
    for path in Path("old").glob("[!.]*"):
        shutil.copy(path, "got-one")
    run("infer", "got-one/reports.csv", "--out", "found-one")
    error = json.loads(next_round(run, "one", "two", code=1).stdout)["error"]

    assert "files of a collection must be as `crowdveil campaign collect` wrote them" in error["rule"]
    assert "files.csv, reports.csv" in error["value"]
    assert "campaign collect` and `infer` again" in error["hint"]
    assert not Path("two").exists()


def test_a_round_of_another_campaign_is_refused(run: Run, folder: Path) -> None:
    """Reports of another campaign beside a later round are refused by collect, and its document by verify."""
    ask(run, "labels")
    next_round(run, "one", "two")
    next_round(run, "one", "other")
    collect(run, "two", range(8))
    collected = files("got-two")
    shutil.rmtree("two/earlier")
    shutil.copytree("got-two", "two/earlier")
    words = ("campaign", "collect", "sent-two", "--campaign", "two/campaign.json", "--out", "got-two", "--json")
    assert "those of the round before" in refused(run(*words, code=1))
    false = run("verify", "two/campaign.json", "--json", code=1)
    shutil.rmtree("two/earlier")
    missing = run(*words, code=1)
    handed = ("campaign", "collect", "sent-two", "--campaign", "other/campaign.json", "--out", "swapped", "--json")
    run("campaign", "invite", "other")

    assert "The round before is the one that the campaign names" in false.stdout
    assert 1 == json.loads(missing.stdout)["error"]["type"].count("ReportsError")
    assert "nothing is released below 4 reports" in refused(run(*handed, code=1))
    assert collected == files("got-two")


def test_a_round_that_hides_answers_of_the_one_before_is_not_collected(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document that states one answer of the round before in place of three is refused by the curator's command."""
    from crowdveil.planning.settings import next_round as planned

    stated = planned.EarlierRound
    monkeypatch.setattr(planned, "EarlierRound", lambda name, _, *ratio: stated(name, 1, *ratio))
    ask(run, "labels")
    next_round(run, "one", "two")
    for home in Path().glob("home-*"):  # devices with their ledgers refuse it themselves
        shutil.rmtree(home)
    with pytest.raises(AssertionError, match="The round before is the one that the campaign names"):
        collect(run, "two", range(8))

    assert not Path("got-two").exists()


def serve_two_rounds(run: Run) -> None:
    """Make two rounds with a service, the first one deleted 30 days after its end, and register the second."""
    ask(run, "labels")
    service = 'service = { url = "http://127.0.0.1:8765", purge_after_days = 30 }'
    Path("served.toml").write_text(Path("things.toml").read_text().replace("2099-12-31", "2090-12-31") + service)
    shutil.rmtree("one")
    run("campaign", "new", "served.toml", "--out", "one", "--anyway")
    one = CampaignFolder("one")
    sent = [AcceptedReport(slot, one.tasks(slot), [slot % 5] * EACH) for slot in range(WORKERS)]
    write_campaign_reports("got-one", one.campaign, sent, replace=True)
    run("infer", "got-one/reports.csv", "--out", "found-one")
    words = ("campaign", "next-round", "one", "found-one", "--out", "two", "--json")
    late = run(*words, "--until", "2091-01-30", code=1)
    assert "before the day on which the reports of the round before are deleted" in refused(late)
    run(*words, "--until", "2091-01-10")


def test_copied_reports_are_deleted_on_the_day_that_was_promised(run: Run, folder: Path) -> None:
    """A later round is purged on the day of the first one, with the unchanged copy of its reports and nothing else."""
    pytest.importorskip("sqlalchemy")
    from crowdveil.service.campaign_registration import register_campaign_in_database
    from crowdveil.service.store import Store

    serve_two_rounds(run)
    first, second = (CampaignFolder(name).campaign for name in ("one", "two"))
    url = f"sqlite:///{Path('two/reports.sqlite').absolute()}"
    run("campaign", "invite", "two")
    register_campaign_in_database(url, Path("two/campaign.json"))
    store = Store.open(url)
    store.close_and_count_reports(second.digest)
    store.close()
    Path("two/earlier/mine.txt").write_text("mine")
    with Path("two/earlier/crowd.json").open("a") as stream:
        stream.write("\n")
    shutil.copytree("got-one", "kept")
    words = ("campaign", "purge", "two/campaign.json", "--yes", "--json")
    warned = json.loads(run(*words).stdout)["warnings"]
    left = {path.name for path in Path("two/earlier").iterdir()}
    shutil.copy("kept/crowd.json", "two/earlier/crowd.json")
    again = json.loads(run(*words).stdout)["warnings"]

    assert first.purge_day == second.purge_day
    assert {"mine.txt", "crowd.json", "campaign.json", ".crowdveil.json"} == left
    assert (["crowd.json"], []) == ([Path(text.split()[0]).name for text in warned], again)
    assert {"mine.txt", "campaign.json"} == {path.name for path in Path("two/earlier").iterdir()}
    assert files("kept") == {name.replace("got-one", "kept"): data for name, data in files("got-one").items()}


def test_the_service_deletes_copied_reports_on_the_day_of_deletion(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `serve` calls after a purge deletes the copy beside the campaign that was purged, and of no other."""
    server = pytest.importorskip("crowdveil.service.server")
    serve_two_rounds(run)
    run("campaign", "invite", "two")
    called: list[Any] = []
    monkeypatch.setattr(server, "run", lambda settings, listening, on_purge: called.append(on_purge))
    run("campaign", "serve", "two/campaign.json", "--port", "0")
    (on_purge,) = called
    on_purge(b"another")
    kept = Path("two/earlier/reports.csv").exists()
    on_purge(CampaignFolder("two").campaign.digest)

    assert kept
    assert ["campaign.json"] == [path.name for path in Path("two/earlier").iterdir()]


def test_too_many_workers_and_tasks_are_refused_before_anybody_is_asked(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of all rounds has an entry for every worker and task: a later round that cannot be read is not made."""
    from crowdveil.folder.campaign import collection_of_all_rounds

    ask(run, "labels")
    monkeypatch.setattr(collection_of_all_rounds, "MOST_ENTRIES", WORKERS * TASKS - 1)

    assert "pairs of a worker and a task" in refused(next_round(run, "one", "two", code=1))
    assert not Path("two").exists()


def test_a_round_without_room_for_its_channels_is_refused(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal names both limits, what the rounds before used, and what to do."""
    from crowdveil.planning.settings import next_round as planned

    ask(run, "labels")
    monkeypatch.setattr(planned, "MAX_CHANNELS", 1)
    error = json.loads(next_round(run, "one", "two", code=1).stdout)["error"]

    assert "at most 1 channels and" in error["rule"]
    assert "1 channels with 6 symbols before" in error["value"]
    assert "campaign of its own" in error["hint"]


def test_the_truths_read_each_report_through_its_own_channel(run: Run, folder: Path) -> None:
    """The table of the joined collection gives each cell the channel of the round in which it was asked."""
    from crowdveil.folder.evidence import read_evidence

    ask(run, "labels")
    next_round(run, "one", "two")
    collect(run, "two", range(2, 10))
    evidence, one, two = read_evidence(Path("got-two/reports.csv")), CampaignFolder("one"), CampaignFolder("two")
    table: Any = evidence.channel
    place = {task.id: index for index, task in enumerate(two.campaign.tasks)}
    chosen = channel_indices(table, evidence.reports.tasks, evidence.reports.workers)
    first, wrong = cells("got-one"), []
    for row, worker in enumerate(map(str, evidence.reports.workers)):
        for column, task in enumerate(map(str, evidence.reports.tasks)):
            if (task, worker) in cells("got-two"):
                asked = one if (task, worker) in first else two
                own = asked.campaign.channel_of(int(worker[1:]), place[task])
                wrong += [(task, worker)] * (table.channels[chosen[row, column]].rows != own.rows)

    assert [] == wrong
    assert np.unique(chosen).size > 1

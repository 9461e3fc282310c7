"""The one-file device: the shared vectors, every state with a crash after it, faults of the service, the ledger."""

import base64
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import date
from decimal import Context, Decimal
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.campaign.rules.document import Task
from crowdveil.standalone import device as one_file
from crowdveil.standalone.checks import (
    CheckedChannel,
    ClaimLog,
    Refused,
    canonical,
    check_certificate,
    epsilon,
    shown,
)
from crowdveil.standalone.device import Device
from crowdveil.standalone.program import joined_program
from tests.campaign.builders import LABELS, build_campaign, response
from tests.campaign.stub_service import StubService
from tests.chi_square import chi_square_p_value
from tests.device_vectors import read_vectors

ANSWERS = {0: "quokka", 1: "", 2: "narwhal", 3: "zebrafish"}


@pytest.fixture
def unpaused(monkeypatch):
    """Return the pauses between tries, which are not waited for."""
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setattr(Device.send, "__defaults__", (8, pauses.append))
    return pauses


def link_of(service: StubService, slot: int = 1) -> str:
    """Return the link of a slot."""
    return service.built.link(slot).text


def answered(service: StubService, home: Path) -> Device:
    """Return a device, locked, with the answers stored."""
    device = Device(link_of(service), home)
    device.__enter__()
    device.open()
    for cell, label in ANSWERS.items():
        device.answer(cell, label)
    return device


@pytest.mark.parametrize("vector", read_vectors("sampling.json"), ids=lambda vector: vector["name"])
def test_draws_the_symbols_of_the_vectors(vector):
    """Each word at a border of a row gives the stated symbol."""
    channel = check_certificate(json.loads(vector["certificate"]), ClaimLog())
    width = 1 if len(channel.outputs) <= 255 else 2
    answers = [None if answer == len(channel.labels) else answer for answer in vector["answers"]]

    source = BytesIO(bytes.fromhex(vector["random"])).read
    body = one_file.draw([channel] * len(answers), answers, width, source)

    assert vector["report"] == [int.from_bytes(body[k : k + width], "big") for k in range(0, len(body), width)]


def test_a_claim_above_the_table_is_counted_as_the_table():
    """A certificate whose claim exceeds the loss of its table adds that of the table to the ledger, as in a browser."""
    sealed: dict[str, Any] = response(epsilon=1.0).certificate()
    fields = {**sealed, "ratio": [100, 1]}
    del fields["sha256"]
    digest = hashlib.sha256(canonical(fields)).hexdigest()

    assert check_certificate({**fields, "sha256": digest}, ClaimLog()).ratio == Fraction(*sealed["ratio"])


@pytest.mark.parametrize("vector", read_vectors("tokens.json"), ids=lambda vector: vector["name"])
def test_links_are_read(vector):
    """A link gives the service, the campaign, the token and the slot."""
    url = vector["link"].partition("/a/")[0]

    program: Any = one_file

    assert (url, vector["campaign"], vector["token"], vector["slot"]) == program.parse_link(vector["link"])
    assert program.parse_link(vector["link_without_service"])[0] is None


def files_of(vector: dict[str, Any], folder: Path) -> Path:
    """Write the campaign of a vector as a folder."""
    (folder / "parts").mkdir(parents=True)
    (folder / "campaign.json").write_text(vector["campaign"])
    for number, part in enumerate(vector["parts"]):
        (folder / "parts" / f"{number:04}.json").write_text(part)
    return folder


@pytest.mark.parametrize("vector", read_vectors("campaigns.json"), ids=lambda vector: vector["name"])
def test_reports_of_the_vectors(vector, tmp_path, monkeypatch):
    """The stated answers and random bytes give the stated body and report file."""
    monkeypatch.setattr(one_file, "today", lambda: "2027-01-12")
    monkeypatch.setattr(Device, "require_open", lambda self: None)
    monkeypatch.setattr(Device, "seal", staticmethod(bytes))  # of a relay: the body that is sealed
    url = json.loads(vector["campaign"])["url"]
    link = f"{url + '/a/' if url else ''}#1.{vector['campaign_name']}.{vector['token']}"
    files = files_of(vector, tmp_path / "files")
    with Device(link, tmp_path / "home", files, BytesIO(bytes.fromhex(vector["random"])).read) as device:
        device.open()
        if "level" in vector:
            device.choose(vector["level"])
        for cell, answer in enumerate(vector["answers"]):
            device.answer(cell, "" if answer is None else device.channels(device.level)[cell].labels[answer])
        device.record["report"] = vector["report"]
        device.sample()

        assert vector["tasks"] == device.tasks
        assert vector["body"] == device.record["body"]
        assert vector["report_file"].encode() == device.save_report(tmp_path).read_bytes()


def test_a_device_goes_through_its_states(service, tmp_path):
    """Answers are stored, replaced by the report in one write, sent once, and everything but the receipt is deleted."""
    device = answered(service, tmp_path)
    assert ("answering", [1, None, 2, 0]) == (device.record["state"], device.record["answers"])
    device.sample()
    stored = (device.folder / "record.json").read_text()
    assert "sampled" == device.record["state"]
    assert "answers" not in stored
    device.send()

    assert "receipted" == device.record["state"]
    assert {"record.json"} == {path.name for path in device.folder.iterdir()}
    assert device.token not in (device.folder / "record.json").read_text()
    assert 1 == len(service.reports)
    device.__exit__()
    with Device(link_of(service), tmp_path) as again:
        again.open()
        with pytest.raises(Refused, match="nothing is drawn again"):
            again.answer(0, "quokka")


def test_nothing_that_is_sent_holds_an_answer(service, tmp_path):
    """No request holds a label, in any common form; the token is in one header of two calls and in no address."""
    device = answered(service, tmp_path)
    device.sample()
    device.send()

    sent = b"".join(f"{path} {header} ".encode() + body for _, path, header, body in service.requests)
    for label in LABELS.names:
        for form in (label.encode(), label.encode().hex().encode(), base64.b64encode(label.encode()).rstrip(b"=")):
            assert form not in sent
    assert [4] == sorted({len(body) for body in service.bodies})
    assert not any(device.token in path for _, path, _, _ in service.requests)
    assert {"/link", "/reports"} == {
        "/reports" if "/reports/" in path else path[-5:] for _, path, header, _ in service.requests if header
    }


@pytest.mark.parametrize("faults", [["lost reply"], ["lost request"], ["busy", "busy", "lost reply", "busy"]])
def test_the_same_bytes_are_sent_until_the_receipt(service, tmp_path, unpaused, faults):
    """Lost requests, lost replies and 503 lead to the same bytes again, after longer pauses; one report is stored."""
    service.faults = list(faults)
    device = answered(service, tmp_path)
    device.sample()
    device.send()

    assert len(faults) + 1 == len(service.bodies)
    assert 1 == len(set(service.bodies)) == len(service.reports)
    assert all(2**k <= pause <= 1.5 * 2**k for k, pause in enumerate(unpaused))
    assert "receipted" == device.record["state"]


def test_a_service_that_stays_away_leaves_the_report(service, tmp_path, unpaused):
    """After the last try the report is kept, and a later start sends the same bytes."""
    service.faults = ["lost request"] * 8
    device = answered(service, tmp_path)
    device.sample()
    with pytest.raises(Refused, match="start again later"):
        device.send()
    device.__exit__()
    with Device(link_of(service), tmp_path) as again:
        again.open()
        again.send()

    assert 9 == len(service.bodies)
    assert 1 == len(set(service.bodies))


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("link-used", "reason: link-used.*may have arrived"),
        ("closed", "reason: closed"),
        ("link-revoked", "reason: link-revoked"),
        ("answered-before", "reason: reply 4.*may have arrived"),
        ("relay", "reason: reply 4.*may have arrived"),
        ("other bytes", "another report than was sent"),
        ("redirect", "did not confirm the report"),
    ],
)
def test_refusals_of_the_service_end_in_a_sentence(service, tmp_path, unpaused, fault, sentence):
    """A refusal ends the sending, in no words of the service; the bytes are kept, and nothing is drawn again."""
    service.faults = [fault]
    device = answered(service, tmp_path)
    device.sample()
    body = device.record["body"]

    with pytest.raises(Refused, match=sentence):
        device.send()

    assert (1, []) == (len(service.bodies), unpaused)
    assert ("sent", body) == (device.record["state"], device.record["body"])


@pytest.mark.parametrize(
    ("link_state", "campaign_state", "name"),
    [
        ("used", "open", "link-used"),
        ("revoked", "open", "link-revoked"),
        ("unused", "closed", "closed"),
        ("unused", "early", "early"),
    ],
)
def test_nothing_is_drawn_for_a_link_that_is_used(service, tmp_path, link_state, campaign_state, name):
    """Before sampling the device asks; answers stay where they are."""
    device = answered(service, tmp_path)
    service.link_state, service.campaign_state = link_state, campaign_state

    with pytest.raises(Refused) as refusal:
        device.sample()

    assert name == refusal.value.name
    assert link_state != "unused" or "whole days in UTC" in refusal.value.sentence
    assert "answering" == device.record["state"]
    assert [] == service.bodies


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone of a process is set on POSIX only")
@pytest.mark.parametrize(
    ("days", "said"),
    [
        (
            ("2098-01-10", "2098-01-17"),
            "has not begun yet. It is open from 2098-01-10 to 2098-01-17, whole days in UTC",
        ),
        (("2020-01-10", "2020-01-17"), "is closed. It is open from 2020-01-10 to 2020-01-17, whole days in UTC"),
        (("2020-01-10", "2020-01-17"), " (UTC+1400). If that is wrong, set it."),
    ],
)
def test_a_refusal_names_the_days_and_the_clock(tmp_path, monkeypatch, days, said):
    """Before the first day and after the last one the device names both, in UTC, and its clock at UTC+14."""
    opens, closes = map(date.fromisoformat, days)
    built = build_campaign(url=None, opens=opens, closes=closes)
    monkeypatch.setenv("TZ", "XYZ-14")
    time.tzset()
    try:
        with Device(built.link(0).text, tmp_path / "home", built.write(tmp_path / "files")) as device:
            device.open()
            with pytest.raises(Refused) as refusal:
                device.require_open()
    finally:
        monkeypatch.undo()
        time.tzset()

    assert said in refusal.value.sentence


def test_a_changed_campaign_is_refused_and_not_stored(service, tmp_path):
    """Bytes with another hash than the link's are not stored, so that the right ones can be fetched later."""
    service.document = service.built.campaign.to_bytes().replace(b"Animals", b"Animalz")
    with Device(link_of(service), tmp_path) as device, pytest.raises(Refused, match="was changed"):
        device.open()
    service.document = b""
    with Device(link_of(service), tmp_path) as device:
        device.open()

        assert "verified" == device.record["state"]


def test_stored_files_are_checked_at_every_start(service, tmp_path):
    """A stored campaign that was changed on the disk is refused."""
    device = answered(service, tmp_path)
    path = device.folder / "campaign.json"
    path.write_bytes(path.read_bytes().replace(b"Animals", b"Animalz"))

    with pytest.raises(Refused, match="was changed"):
        device.open()


def test_one_process_at_a_time(service, tmp_path):
    """A second device for the same link is refused while the first is open."""
    with Device(link_of(service), tmp_path):
        with pytest.raises(Refused, match="Another program"), Device(link_of(service), tmp_path):
            pass
        with Device(link_of(service, 2), tmp_path):
            pass
    with Device(link_of(service), tmp_path):
        pass


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_only_the_owner_reads_the_records(service, tmp_path):
    """Records, ledger and folders have no permission for others."""
    device = answered(service, tmp_path / "home")
    device.sample()
    one_file.add_to_ledger(device.home, device.ledger_lines())

    for path in (tmp_path / "home").rglob("*"):
        assert 0 == path.stat().st_mode & 0o077, path


CRASHING = """
import os, signal, sys
from pathlib import Path
from crowdveil.standalone import device as one_file
stop, real = int(sys.argv[3]), one_file.os.replace
def replace(source, target, count=[0]):
    count[0] += 1
    if count[0] == stop:
        os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)
one_file.os.replace = replace
with one_file.Device(sys.argv[1], Path(sys.argv[2])) as device:
    one_file.run(device, Path(sys.argv[4]), Path(), None)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_a_device_that_is_killed_at_any_write_sends_one_report(service, tmp_path):
    """Killed before each of its writes takes effect, and started again, a device has one report in store and ledger."""
    answers = tmp_path / "my.csv"
    answers.write_text("task,label\nt0,quokka\nt2,narwhal\n")
    kills = 0
    for stop in range(1, 20):
        home = tmp_path / f"home{stop}"
        arguments = [sys.executable, "-c", CRASHING, link_of(service), str(home), str(stop), str(answers)]
        done = subprocess.run(arguments, capture_output=True, check=False)
        if done.returncode == 0:
            break
        assert -signal.SIGKILL == done.returncode, done.stderr
        kills += 1
        with Device(link_of(service), home) as device:
            one_file.run(device, answers, tmp_path, None)
            assert "receipted" == device.record["state"]
        assert 1 == len({line["report"] for line in one_file.read_ledger(home)})
        assert 1 == len(set(service.bodies)) == len(service.reports)
        service.reports.clear()
        service.requests.clear()

    assert kills >= 7


def fit(channel: CheckedChannel, rows: list[list[int]], source: one_file.Source) -> float:
    """Return the smallest p-value, over all answers, of 30,000 draws from `rows` against the channel's row."""
    drawn, cells, p_values = channel._replace(rows=rows), 30_000, []
    for answer in (*range(len(channel.labels)), None):
        body = one_file.draw([drawn] * cells, [answer] * cells, 1, source)
        row = channel.rows[-1 if answer is None else answer]
        p_values.append(chi_square_p_value([body.count(k) for k in range(len(row))], [x / 2**48 for x in row]))
    return min(p_values)


@pytest.mark.slow
def test_draws_follow_the_table_and_a_wrong_table_does_not():
    """Draws fit every row (false alarm 4e-9); rows that keep the answer 5 % less often are rejected (seeded bytes)."""
    channel = check_certificate(response().certificate(), ClaimLog())
    wrong = [list(row) for row in channel.rows]
    for answer, row in enumerate(wrong):
        moved = row[answer] // 20
        row[answer] -= moved
        row[answer - 1] += moved

    assert fit(channel, list(map(list, channel.rows)), os.urandom) > 1e-9
    assert fit(channel, wrong, random.Random(1).randbytes) < 1e-9


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 2**40), st.integers(1, 2**47)), min_size=1, max_size=8))
def test_the_ledger_never_shows_too_little(lines):
    """The sum of the ledger is at least the logarithm of the exact product of ratios, and near it."""
    made = [{"cells": n, "numerator": bottom + more, "denominator": bottom} for n, more, bottom in lines]
    exact = Fraction(1)
    for line in made:
        exact *= Fraction(line["numerator"], line["denominator"]) ** line["cells"]
    context = Context(prec=100)
    logarithm = context.ln(context.divide(Decimal(exact.numerator), Decimal(exact.denominator)))

    found = epsilon(made)

    assert logarithm <= found <= context.add(logarithm, Decimal("1e-40"))
    assert Decimal(shown(found)) >= logarithm


def test_the_ledger_adds_up_over_campaigns(service, tmp_path):
    """Each campaign adds its lines once, by host; the promise names both sums before anything is drawn."""
    for number in (1, 2):
        service.built = build_campaign(url=service.built.campaign.url)
        with Device(link_of(service), tmp_path) as device:
            device.open()
            assert f"{4 * number}.000 to all curators" in one_file.promise(device)
            device.sample()
            lines = device.ledger_lines()
            device.send()
            one_file.add_to_ledger(device.home, lines)

    assert [4, 4] == [line["cells"] for line in one_file.read_ledger(tmp_path)]
    assert "8.000" == shown(epsilon(one_file.read_ledger(tmp_path)))


def test_a_budget_stops_a_file_of_answers(service, tmp_path):
    """With answers from a file, nothing is sent beyond the budget; the terminal warns and lets the worker decide."""
    answers = tmp_path / "my.csv"
    answers.write_text("task,label\nt0,quokka\n")
    with Device(link_of(service), tmp_path) as device:
        with pytest.raises(Refused, match="exceeds your budget of"):
            one_file.run(device, answers, tmp_path, Decimal("3.9"))
        assert [] == service.bodies
        one_file.run(device, answers, tmp_path, Decimal("4.0"))

    assert 1 == len(service.bodies)


def test_a_terminal_asks_and_keeps_each_answer(service, tmp_path, monkeypatch, capsys):
    """Questions are asked in order, a wrong answer again, and an answer before an interruption is kept."""
    replies = iter(["quokka", "cat", "narwhal"])

    def read(_: str) -> str:
        try:
            return next(replies)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr("builtins.input", read)
    with Device(link_of(service), tmp_path) as device:
        with pytest.raises(KeyboardInterrupt):
            one_file.run(device, None, tmp_path, None)
        assert [1, 2, None, None] == device.record["answers"]
        more = iter(["", "", "zebrafish", "", "yes"])
        monkeypatch.setattr("builtins.input", lambda _: next(more))
        one_file.run(device, None, tmp_path, Decimal(1))

    assert "One random symbol for each of 4 tasks" in capsys.readouterr().out
    assert "receipted" == device.record["state"]


def test_pictures_are_fetched_before_the_first_question(service, tmp_path, monkeypatch):
    """The service sees no pauses between pictures, which would show for how long a worker looked at each task."""
    seen = []
    monkeypatch.setattr(Device, "picture", lambda _, cell: seen.append(f"fetch {cell}") or "")
    monkeypatch.setattr("builtins.input", lambda asked: seen.append("question") or "yes" * ("Send" in asked))
    with Device(link_of(service), tmp_path) as device:
        one_file.run(device, None, tmp_path, None)

    assert [*(f"fetch {cell}" for cell in range(4)), *["question"] * 5] == seen


def test_the_terminal_shows_the_link_of_a_task(tmp_path, monkeypatch, capsys):
    """The address of what is judged stands below its task, with who sees that it is opened; others have none."""
    tasks = tuple(
        Task(f"t{number}", f"Essay {number}", link=link) for number, link in enumerate((None, "https://a.example/1"))
    )
    built = build_campaign(url=None, tasks=2, content={"tasks": tasks})
    monkeypatch.setattr("builtins.input", lambda asked: "yes" * ("Send" in asked))
    with Device(built.link(0).text, tmp_path, built.write(tmp_path / "files")) as device:
        one_file.run(device, None, tmp_path / "out", None)
    first, second = capsys.readouterr().out.split("Essay 0")[1].split("Essay 1")

    assert "Link" not in first
    assert "Link (its host sees that you open it): https://a.example/1\n" in second


def test_the_program_runs_without_anything_installed(tmp_path):
    """The file alone, in isolated Python without packages, writes the report of a campaign without a service."""
    built = build_campaign(url=None)
    files = built.write(tmp_path / "files")
    program = tmp_path / "device.py"
    program.write_bytes(joined_program())
    (tmp_path / "my.csv").write_text("task,label\nt0,quokka\n")
    command = [sys.executable, "-I", "-S", program, built.link(2).text, "--answers", "my.csv", "--files", files]
    home = ["--home", tmp_path / "home"]

    runs = [subprocess.run([*command, *home], cwd=tmp_path, capture_output=True, text=True) for _ in range(2)]
    reports = list(tmp_path.glob("report-2-*.json"))
    ledger = subprocess.run([sys.executable, "-I", "-S", program, "--ledger", *home], capture_output=True, text=True)

    assert [0, 0] == [run.returncode for run in runs], runs[0].stderr
    assert 1 == len(reports)
    assert hashlib.sha256(reports[0].read_bytes()).digest()
    assert "to all curators: epsilon 4.000" in ledger.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no link"], "no link of a campaign"),
        (["LINK", "--answers", "none.csv", "--files", "files"], "none.csv"),
        (["LINK", "--answers", "none.csv", "--files", "none"], "campaign.json"),
        (["LINK", "--files", "files", "--budget", "-1"], "positive number"),
        (["LINK", "--files", "files", "--budget", "nan"], "positive number"),
        (["--ledger", "--home", "damaged"], "is damaged"),
        (["LINK", "--files", "files"], "Stopped"),
    ],
)
def test_the_program_ends_in_a_sentence(tmp_path, words, message):
    """A wrong link, file or budget, a damaged ledger or the end of input is one line on stderr and exit code 1."""
    built = build_campaign(url=None)
    built.write(tmp_path / "files")
    filled = [built.link(0).text if word == "LINK" else word for word in words]
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "ledger.json").write_text('{"lines":[1]}')
    program = tmp_path / "device.py"
    program.write_bytes(joined_program())
    command = [sys.executable, "-I", "-S", program, "--home", tmp_path / "home", *filled]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    assert (1, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert message in done.stderr


@pytest.mark.parametrize("reply", [b"[]", b"{}", b"no json"])
def test_a_garbled_reply_about_the_link_is_refused(service, tmp_path, monkeypatch, reply):
    """A reply of another form draws nothing."""
    device = answered(service, tmp_path)
    monkeypatch.setattr(one_file, "call", lambda *_: reply)

    with pytest.raises(Refused, match="reply"):
        device.sample()

    assert "answering" == device.record["state"]

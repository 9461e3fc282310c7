"""Device, relay and curator as three processes: kill -9 loses and doubles nothing, and no party sees too much."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")

from crowdveil.campaign.device import answer_campaign
from crowdveil.campaign.relay.sealing import new_key, private_key_pem, seal_body
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.rules.token import token_hash
from tests.campaign.builders import LABELS, BuiltCampaign, build_campaign, relay_of_key
from tests.campaign.service.browser import free_port

pytestmark = pytest.mark.slow

TASKS, SLOTS = 64, 4
WAIT_SECONDS = 60.0


@dataclass
class Party:
    """A process of the command line; `restart` starts it again with the same arguments."""

    arguments: list[str]
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start the process and wait until it has printed its address."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "crowdveil", *self.arguments], stdout=subprocess.PIPE, stderr=log
            )
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line == b"}\n":
                break
        self.data: dict[str, Any] = json.loads(b"".join(lines))

    def kill(self) -> None:
        """End the process at once, as by kill -9."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@dataclass
class Setting:
    """A campaign, the folders of relay and curator, and the bodies that the devices sealed, by slot."""

    built: BuiltCampaign
    folder: Path
    key: Any
    bodies: dict[int, bytes] = field(default_factory=dict)
    sealed: dict[int, bytes] = field(default_factory=dict)

    @property
    def campaign_file(self) -> Path:
        """The relay's copy of the campaign."""
        return self.folder / "relay" / "campaign.json"

    def answer(self, slot: int) -> None:
        """Answer all tasks in this process, and keep what was sealed."""
        path = self.folder / f"answers-{slot}.csv"
        path.write_text("task,label\n" + "".join(f"t{task},{LABELS.names[task % 3]}\n" for task in range(TASKS)))

        def sealing(campaign: Campaign, body: bytes) -> bytes:
            self.bodies[slot], self.sealed[slot] = body, seal_body(campaign, body)
            return self.sealed[slot]

        link = self.built.link(slot).text
        answer_campaign(link, answers=path, home=self.folder / "homes" / str(slot), sealing=sealing)

    def collect_last_step(self) -> tuple[dict[str, Any], Path]:
        """Open the batches; return what is printed, and the folder."""
        out = self.folder / "curator" / "collected"
        (self.folder / "key.pem").write_bytes(private_key_pem(self.key))
        curator = self.folder / "curator"
        words = [curator / "batches", "--campaign", curator / "campaign.json", "--key", self.folder / "key.pem"]
        done = crowdveil("campaign", "collect", *words, "--out", out, "--json")
        return json.loads(done), out


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [sys.executable, "-m", "crowdveil", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def crowdveil(*words: object) -> str:
    """Run a command and return what it prints."""
    done = run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_setting(folder: Path, unit: str, *, least_batch: int = 3) -> Setting:
    """Write the campaign into the folder of the relay, and its public part into that of the curator."""
    key = new_key()
    content = {"relay": relay_of_key(key, unit, least_batch=least_batch)}
    built = build_campaign(url=f"http://127.0.0.1:{free_port()}", tasks=TASKS, slots=SLOTS, content=content)
    built.write(folder / "relay")
    (folder / "curator").mkdir()
    (folder / "curator" / "campaign.json").write_bytes(built.campaign.to_bytes())
    return Setting(built, folder, key)


@pytest.fixture
def parties() -> Iterator[list[Party]]:
    """Processes that are ended after the test."""
    running: list[Party] = []
    yield running
    for party in running:
        if party.process.poll() is None:
            party.kill()


def start(setting: Setting, parties: list[Party]) -> tuple[Party, Party]:
    """Start relay and curator."""
    side, port = setting.folder / "curator", str(setting.built.campaign.url).rpartition(":")[2]
    words = [
        "campaign",
        "receive",
        str(side / "campaign.json"),
        "--out",
        str(side / "batches"),
        "--port",
        str(free_port()),
    ]
    curator = Party([*words, "--json"], setting.folder / "curator.log")
    parties.append(curator)
    words = ["campaign", "relay", str(setting.campaign_file), "--to", curator.data["url"], "--port", port]
    relay = Party([*words, "--token-file", curator.data["token_file"], "--json"], setting.folder / "relay.log")
    parties.append(relay)
    return relay, curator


def batches(setting: Setting) -> list[Path]:
    """Return the batches at the curator."""
    return list((setting.folder / "curator" / "batches").glob("*.batch"))


def found_bodies(setting: Setting, out: Path) -> list[bytes]:
    """Return the bodies of the collected reports, sorted."""
    names = [*setting.built.campaign.channels[0].outputs]
    rows = [line.split(",") for line in (out / "reports.csv").read_text().splitlines()[1:]]
    bodies: dict[str, bytearray] = {}
    null = names.index("NULL")
    for worker in json.loads((out / "crowd.json").read_text())["workers"]:
        bodies[worker] = bytearray([null] * TASKS)
    for task, worker, label in rows:
        bodies[worker][int(task[1:])] = names.index(label)
    return sorted(map(bytes, bodies.values()))


def files_of(*folders: Path) -> bytes:
    """Return names and contents of all files, as one run of bytes."""
    paths = [path for folder in folders for path in ([folder] if folder.is_file() else sorted(folder.rglob("*")))]
    return b"\n".join(str(path.name).encode() + b"\n" + path.read_bytes() for path in paths if path.is_file())


def test_three_processes_lose_and_double_nothing(tmp_path: Path, parties: list[Party]) -> None:
    """Relay and curator are killed between reports, before and after batches are formed; every report arrives once."""
    setting = make_setting(tmp_path, "report")
    relay, curator = start(setting, parties)
    setting.answer(0)
    relay.kill()
    relay.restart()
    for slot in (1, 2):
        setting.answer(slot)
    curator.kill()
    crowdveil("campaign", "close", setting.campaign_file)
    log = tmp_path / "relay.log"
    until(lambda: b"forwarding failed" in log.read_bytes())
    relay.kill()
    relay.restart()
    assert [] == batches(setting)
    curator.restart()
    until(lambda: len(batches(setting)) == 1)
    relay.kill()
    relay.restart()
    time.sleep(1.5)
    printed, out = setting.collect_last_step()

    assert 1 == len(batches(setting))
    assert (3, 0) == (printed["workers"], printed["refused"])
    assert sorted(setting.bodies.values()) == found_bodies(setting, out)
    assert b"Traceback" not in files_of(log, tmp_path / "curator.log")


def test_no_party_sees_what_it_must_not_see(tmp_path: Path, parties: list[Party]) -> None:
    """The relay never has a body; the curator has no token, no hash of it, no report id and no time; nor have logs."""
    setting = make_setting(tmp_path, "report")
    start(setting, parties)
    for slot in range(SLOTS):
        setting.answer(slot)
    crowdveil("campaign", "close", setting.campaign_file)
    until(lambda: len(batches(setting)) == 1)
    _, out = setting.collect_last_step()
    logs = files_of(tmp_path / "relay.log", tmp_path / "curator.log")
    relay_side = files_of(tmp_path / "relay") + logs
    curator_side = files_of(tmp_path / "curator") + logs
    (batch,) = batches(setting)
    header, _, content = batch.read_bytes().partition(b"\n")
    size = setting.built.campaign.sent_bytes

    for body in setting.bodies.values():
        assert body not in relay_side
        assert body.hex().encode() not in relay_side
        assert body not in content
    for secret in secrets_of(setting):
        assert secret not in curator_side
    assert {"campaign", "format", "reports"} == set(json.loads(header))
    assert sorted(setting.sealed.values()) == sorted(content[k : k + size] for k in range(0, len(content), size))
    assert 0 == batch.stat().st_mtime
    assert ["w0000", "w0001", "w0002", "w0003"] == json.loads((out / "crowd.json").read_text())["workers"]


def secrets_of(setting: Setting) -> Iterator[bytes]:
    """Yield token, hash of the token, and report id of every device, in bytes and as text."""
    for slot, token in enumerate(setting.built.tokens):
        (record,) = (setting.folder / "homes" / str(slot)).rglob("record.json")
        report = json.loads(json.loads(record.read_text())["receipt"])["report"]
        hashed = token_hash(setting.built.campaign.digest, token)
        yield from (token.secret, token.text.encode(), hashed, hashed.hex().encode())
        yield from (report.encode(), bytes.fromhex(report))


def test_single_cells_are_read_by_infer_without_names(tmp_path: Path, parties: list[Party]) -> None:
    """A device process, single cells: the folder keeps the counts of each task; infer refuses methods that link."""
    setting = make_setting(tmp_path, "cell")
    start(setting, parties)
    answers = tmp_path / "my.csv"
    answers.write_text("task,label\nt0,quokka\n")
    crowdveil(
        "campaign", "answer", setting.built.link(3).text, "--answers", answers, "--home", tmp_path / "homes" / "3"
    )
    for slot in range(3):
        setting.answer(slot)
    crowdveil("campaign", "close", setting.campaign_file)
    until(lambda: len(batches(setting)) == 1)
    printed, out = setting.collect_last_step()

    assert 4 == printed["workers"]
    columns = list(zip(*found_bodies(setting, out), strict=True))
    for task, column in enumerate(columns):
        known = sorted(body[task] for body in setting.bodies.values())
        rest = list(column)
        for code in known:
            rest.remove(code)
        assert 1 == len(rest)
    inferred = json.loads(crowdveil("infer", out / "reports.csv", "--out", tmp_path / "truths", "--json"))
    assert "pooled-dawid-skene" == inferred["method"]
    words = ("infer", out / "reports.csv", "--method", "dawid-skene", "--out", tmp_path / "no")
    assert "reports without names" in run(*words).stderr
    assert 1 == run(*words).returncode

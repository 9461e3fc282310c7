"""The vectors of tests/vectors in JavaScript: node and Chromium run the page's module on the files of Python."""

import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdveil
from crowdveil.campaign.rules.canonical_json import canonical_bytes
from crowdveil.campaign.rules.document import Campaign
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel import DENOMINATOR, Channel
from crowdveil.errors import CampaignError, CertificateError
from crowdveil.standalone.checks import (
    ClaimLog,
    Refused,
    check_campaign,
    check_certificate,
    digest,
    whole_parts,
)
from crowdveil.standalone.verification import parse_json, verify
from tests.campaign.builders import ledger_line, response
from tests.campaign.service.browser import Forger, chromium, free_port, needs_chromium, served
from tests.campaign.service.firefox import firefox, needs_firefox
from tests.chi_square import chi_square_p_value
from tests.device_vectors import VECTORS, read_vectors

STATIC = Path(crowdveil.__file__).parent / "campaign" / "service" / "static"
NODE = shutil.which("node") or ""
needs_node = pytest.mark.skipif(not NODE, reason="node is not installed")
DRAWS = 100_000
FALSE_ALARM = 1e-6
"""Probability that a right sampler fails one of the two tests of draws."""
MAX_LINES = 600


def vectors() -> dict[str, Any]:
    """Return all vector files by name; certificates have the order of keys that they have in a campaign."""
    found = {path.stem: json.loads(path.read_text("ascii")) for path in sorted(VECTORS.glob("*.json"))}
    for vector in (*found["certificates"]["positive"], *found["certificates"]["negative"]):
        with suppress(ValueError, RecursionError):
            vector["text"] = json.dumps(parse_json(vector["text"]), sort_keys=True, separators=(",", ":"))
    return found


def run_node(program: str, data: object) -> Any:
    """Return the JSON that a module prints; it imports `device.mjs` and reads `data` from stdin."""
    head = (
        f"import * as device from {json.dumps((STATIC / 'device.mjs').as_uri())};\n"
        f"import {{ failures }} from {json.dumps((Path(__file__).parent / 'device_vectors.mjs').as_uri())};\n"
        "import { readFileSync } from 'node:fs';\nconst data = JSON.parse(readFileSync(0, 'utf8'));\n"
    )
    command = [NODE, "--input-type=module", "--eval", head + program]
    done = subprocess.run(command, input=json.dumps(data), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_node
def test_node_passes_the_vectors() -> None:
    """The module gives the report of every positive vector, and refuses every negative one, in node."""
    found = run_node("console.log(JSON.stringify(await failures(device, data)));", vectors())

    assert [] == found


@contextmanager
def page_of_vectors() -> Iterator[str]:
    """Serve an empty page beside the module and the program of the vectors; yield its address."""
    script = {"Content-Type": "text/javascript"}
    files = {
        "/": (200, {"Content-Type": "text/html"}, b"<!doctype html><title>vectors</title>"),
        "/device.mjs": (200, script, (STATIC / "device.mjs").read_bytes()),
        "/failures.mjs": (200, script, (Path(__file__).parent / "device_vectors.mjs").read_bytes()),
    }

    async def nothing(scope: Any, receive: Any, send: Any) -> None: ...

    port = free_port()
    with served(Forger(nothing, files), port, lifespan="off"):
        yield f"http://127.0.0.1:{port}/"


IN_PAGE = "async (vectors) => (await import('/failures.mjs')).failures(await import('/device.mjs'), vectors)"


@pytest.mark.slow
@needs_chromium
def test_chromium_passes_the_vectors() -> None:
    """The module gives the report of every positive vector, and refuses every negative one, in Chromium."""
    with page_of_vectors() as address, chromium() as browser:
        page = browser.new_page()
        page.goto(address)

        assert [] == page.evaluate(IN_PAGE, vectors())


@pytest.mark.slow
@needs_firefox
def test_firefox_passes_the_vectors(tmp_path: Path) -> None:
    """The module gives the report of every positive vector, and refuses every negative one, in Firefox."""
    with page_of_vectors() as address, firefox(tmp_path) as page:
        page.goto(address)

        assert [] == page.result_of(IN_PAGE, vectors())


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize(("tasks", "fits"), [(10_975, True), (10_976, False)])
def test_no_reader_takes_a_report_that_a_relay_would_refuse(tasks: int, fits: bool) -> None:
    """With one seal a cell, 10,975 tasks give at most 900,000 bytes: four readers accept them, and refuse one more."""
    fields = json.loads(next(v["campaign"] for v in read_vectors("campaigns.json") if v["name"] == "a relay"))
    asked = [{"id": f"t{number}", "text": "x", "picture": None} for number in range(tasks)]
    fields |= {"slots": 2, "tasks": asked, "cells": tasks, "body_bytes": tasks}
    fields["assignment_parts"] = list(whole_parts(2, tasks))
    data = canonical_bytes(fields)
    program = """
const bytes = new TextEncoder().encode(data);
const name = device.toBase64url(await device.sha256(bytes));
const refused = (error) => error.defect !== "relay" && error.message;
console.log(await device.readCampaign(bytes, name).then(() => true, refused));
"""

    assert fits == run_node(program, data.decode())
    assert fits == verify(data).holds
    if fits:
        assert Campaign.from_bytes(data).cells == len(check_campaign(data, ClaimLog())[0]["tasks"]) == tasks
        return
    with pytest.raises(CampaignError, match="at most 900000"):
        Campaign.from_bytes(data)
    with pytest.raises(Refused, match="at most 900000"):
        check_campaign(data, ClaimLog())


DRAW = """
const { certificate, draws, seed } = data;
const channel = await device.checkCertificate(device.parseCanonical(certificate));
const counts = channel.rows.map((row) => row.map(() => 0));
const uniform = 2 ** 48 / channel.outputs.length;
const wrong = (row) => row.map((sum, k) => sum * 0.95 + (k + 1) * uniform * 0.05);
const random = (count) => (seed === undefined ? device.randomBytes(count) : seeded(count));
let state = seed;
function seeded(count) {
  const bytes = new Uint8Array(count);
  for (let k = 0; k < count; k++) {
    state = (Math.imul(state ^ (state >>> 15), state | 1) + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    bytes[k] = (mixed ^ (mixed >>> 14)) >>> 24;
  }
  return bytes;
}
channel.cumulative.forEach((row, answer) => {
  const table = seed === undefined ? row : wrong(row);
  const symbols = device.sample(Array(draws).fill(table), random(6 * draws));
  symbols.forEach((symbol) => counts[answer][symbol]++);
});
console.log(JSON.stringify(counts));
"""


@needs_node
def test_draws_follow_the_channel() -> None:
    """1e5 draws of each row follow the table by a chi-square test whose false-alarm rate is 1e-6 in all."""
    channel = response(epsilon=2.0)
    counts = run_node(DRAW, {"certificate": canonical_bytes(channel.certificate()).decode(), "draws": DRAWS})

    for answer, row in enumerate(channel.rows):
        share = np.array(row, dtype=float) / DENOMINATOR
        assert chi_square_p_value(counts[answer], share) > FALSE_ALARM / len(channel.rows)


@needs_node
def test_a_table_that_is_wrong_by_5_percent_is_rejected() -> None:
    """The same test refuses draws of a table that is mixed with 5 % of uniform symbols."""
    channel = response(epsilon=2.0)
    certificate = canonical_bytes(channel.certificate()).decode()
    counts = run_node(DRAW, {"certificate": certificate, "draws": DRAWS, "seed": 1})

    shares = [np.array(row, dtype=float) / DENOMINATOR for row in channel.rows]
    p_values = [chi_square_p_value(row, share) for row, share in zip(counts, shares, strict=True)]
    assert max(p_values) < FALSE_ALARM / len(channel.rows)


SEEN = "aB \u00e9\u00df\u0301\u0308\u093e\u1100\u1161\u2603\u20dd\u4e00\U0001f44d"
UNSEEN = (
    "\t\x1f\x85\xa0\xad\u034f\u061c\u115f\u1680\u180b\u200b\u200c\u200d\u2028\u202e\u2060\u2800\u3000\u3164\ufe0e\ufe0f"
    "\ufeff\ufff9\ufffc\ufdd0\ue000\uffff\U00016fe4\U0001d159\U0001d173\U000e0001"
)
"""Letters, marks and signs, and those that cannot be seen; all are as old as Unicode 13, or will stay unassigned."""
ACCEPTED = """
const accepts = async (text) => device.checkCertificate(device.parseCanonical(text));
console.log(JSON.stringify(await Promise.all(data.map((text) => accepts(text).then(() => true, () => false)))));
"""


@needs_node
def test_all_readers_judge_names_alike() -> None:
    """Two random labels in one certificate pass the library, both devices and the check, or none of them; seed 5."""
    draw = random.Random(5)
    names = [["".join(draw.choices(SEEN * 9 + UNSEEN, k=draw.randint(1, 3))) for _ in "ab"] for _ in range(600)]
    base = response(Categories(("no", "yes"))).certificate()
    texts = []
    for pair in names:
        fields = {**base, "alphabet": {"kind": "categories", "names": pair, "ordered": False}}
        texts.append(json.dumps({**fields, "sha256": digest(fields)}, sort_keys=True, separators=(",", ":")))
    library = [passes(Channel.from_certificate, text) for text in texts]
    device = [passes(lambda given: check_certificate(given, ClaimLog()), json.loads(text)) for text in texts]
    check = [verify(text.encode()).holds for text in texts]
    judged = list(zip(names, library, device, check, run_node(ACCEPTED, texts), strict=True))

    assert [] == [one for one in judged if len(set(one[1:])) > 1]
    assert 50 < sum(library) < 550


def passes(read: Callable[[Any], object], given: object) -> bool:
    """Return whether a reader accepts a certificate."""
    try:
        read(given)
    except (CertificateError, Refused):
        return False
    return True


LEDGER = """
const sums = [], read = [];
for (const line of data) {
  const lines = [line];
  sums.push(device.sumOfLines(lines));
  try {
    read.push(device.readLedger(device.canonical({ format: "crowdveil-ledger/1", lines })).length);
  } catch ({ defect }) {
    read.push(defect);
  }
}
console.log(JSON.stringify([sums, read]));
"""


@needs_node
def test_a_ledger_line_with_a_ratio_below_1_is_refused_and_lowers_no_sum() -> None:
    """An imported line with a numerator below its denominator is refused; one that is stored counts nothing."""
    ratios = [(10**6, 2718282), (1, 1), (2718282, 10**6)]
    sums, read = run_node(LEDGER, [ledger_line(cells=170, numerator=a, denominator=b) for a, b in ratios])

    assert [0.001, 0.001, 170.001] == sums
    assert ["ledger", 1, 1] == read


def test_the_device_is_one_module() -> None:
    """Checks, draw, storage and network are one module that imports nothing and has one source of randomness."""
    text = (STATIC / "device.mjs").read_text("utf-8")

    assert [] == re.findall(r"^import|import\(|Math\.random|innerHTML|eval\(|new Function", text, re.MULTILINE)


def test_the_screens_reach_storage_and_network_through_the_device_only() -> None:
    """The module of the screens imports device and encryption; it names nothing that sends, stores answers or draws."""
    text = (STATIC / "page.mjs").read_text("utf-8")
    reaching = r"fetch|XMLHttp|WebSocket|sendBeacon|EventSource|indexedDB|cookie|crypto|Math\.random|innerHTML|import\("

    assert len(text.splitlines()) <= MAX_LINES
    assert [] == re.findall(reaching, text)
    assert ["./device.mjs", "./hpke.mjs"] == re.findall(r'^import .* from "(.*)";$', text, re.MULTILINE)
    assert {'localStorage.getItem("language")', 'localStorage.setItem("language"'} == set(
        re.findall(r'localStorage\.\w+\("\w+"\)?', text)
    )


def test_the_languages_have_the_same_messages() -> None:
    """Every message of the page exists in both languages, with the same places."""
    english, german = (json.loads((STATIC / f"messages.{name}.json").read_text("utf-8")) for name in ("en", "de"))

    assert list(english) == list(german)
    assert {} == {key: (text, german[key]) for key, text in english.items() if places(text) != places(german[key])}


def test_no_label_may_read_like_the_choice_of_no_answer() -> None:
    """The choice of no answer, in every language of the page, is among the labels of the refused vectors."""
    refused = vectors()["refused_campaigns"]["vectors"]
    labels = {vector["name"].partition("no answer: ")[2].lower() for vector in refused}
    texts = [json.loads(path.read_text("utf-8"))["answer.none"] for path in STATIC.glob("messages.*.json")]

    assert [] == [text for text in texts if text.lower() not in labels]
    assert 2 == len(texts)


def places(text: str) -> set[str]:
    """Return the names of the places of a message."""
    return {part.partition("}")[0] for part in text.split("{")[1:]}

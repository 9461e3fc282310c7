"""The vectors of tests/vectors in JavaScript: node and Chromium run the page's module on the files of Python."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdveil
from crowdveil.channels.channel import DENOMINATOR
from tests.campaign.builders import response
from tests.chi_square import chi_square_p_value
from tests.device_vectors import VECTORS
from tests.service.browser import Forger, chromium, free_port, needs_chromium, served

STATIC = Path(crowdveil.__file__).parent / "service" / "static"
NODE = shutil.which("node") or ""
needs_node = pytest.mark.skipif(not NODE, reason="node is not installed")
DRAWS = 100_000
FALSE_ALARM = 1e-6
"""Probability that a right sampler fails one of the two tests of draws."""
MAX_LINES = 600


def vectors() -> dict[str, Any]:
    """Return all vector files by name."""
    return {path.stem: json.loads(path.read_text("ascii")) for path in sorted(VECTORS.glob("*.json"))}


def run_node(program: str, data: object) -> Any:
    """Return the JSON that a module prints; it imports `device.mjs` and reads `data` from stdin."""
    head = (
        f"import * as device from {json.dumps((STATIC / 'device.mjs').as_uri())};\n"
        f"import {{ failures }} from {json.dumps((Path(__file__).parent / 'device_vectors.mjs').as_uri())};\n"
        "import { readFileSync } from 'node:fs';\nconst data = JSON.parse(readFileSync(0, 'utf8'));\n"
    )
    command = [NODE, "--input-type=module", "--eval", head + program]
    done = subprocess.run(command, input=json.dumps(data), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_node
def test_node_passes_the_vectors() -> None:
    """The module gives the report of every positive vector, and refuses every negative one, in node."""
    found = run_node("console.log(JSON.stringify(await failures(device, data)));", vectors())

    assert [] == found


@needs_chromium
def test_chromium_passes_the_vectors() -> None:
    """The module gives the report of every positive vector, and refuses every negative one, in Chromium."""
    script = {"Content-Type": "text/javascript"}
    files = {
        "/": (200, {"Content-Type": "text/html"}, b"<!doctype html><title>vectors</title>"),
        "/device.mjs": (200, script, (STATIC / "device.mjs").read_bytes()),
        "/failures.mjs": (200, script, (Path(__file__).parent / "device_vectors.mjs").read_bytes()),
    }

    async def nothing(scope: Any, receive: Any, send: Any) -> None: ...

    port = free_port()
    with served(Forger(nothing, files), port, lifespan="off"), chromium() as browser:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        found = page.evaluate(
            "async (vectors) => (await import('/failures.mjs')).failures(await import('/device.mjs'), vectors)",
            vectors(),
        )

    assert [] == found


DRAW = """
const { certificate, draws, seed } = data;
const channel = await device.readCertificate(certificate);
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
    counts = run_node(DRAW, {"certificate": json.dumps(channel.certificate(), separators=(",", ":")), "draws": DRAWS})

    for answer, row in enumerate(channel.rows):
        share = np.array(row, dtype=float) / DENOMINATOR
        assert chi_square_p_value(counts[answer], share) > FALSE_ALARM / len(channel.rows)


@needs_node
def test_a_table_that_is_wrong_by_5_percent_is_rejected() -> None:
    """The same test refuses draws of a table that is mixed with 5 % of uniform symbols."""
    channel = response(epsilon=2.0)
    certificate = json.dumps(channel.certificate(), separators=(",", ":"))
    counts = run_node(DRAW, {"certificate": certificate, "draws": DRAWS, "seed": 1})

    shares = [np.array(row, dtype=float) / DENOMINATOR for row in channel.rows]
    p_values = [chi_square_p_value(row, share) for row, share in zip(counts, shares, strict=True)]
    assert max(p_values) < FALSE_ALARM / len(channel.rows)


def test_the_device_is_one_module_of_at_most_600_lines() -> None:
    """Checks, draw, storage and network are one module that imports nothing and has one source of randomness."""
    text = (STATIC / "device.mjs").read_text("utf-8")

    assert len(text.splitlines()) <= MAX_LINES
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


def places(text: str) -> set[str]:
    """Return the names of the places of a message."""
    return {part.partition("}")[0] for part in text.split("{")[1:]}

"""Encryption to the curator's key: RFC 9180 in the page's module, and both implementations against each other."""

import json
import shutil
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")

import crowdveil
from crowdveil.campaign.relay.sealing import (
    decrypt_part,
    new_key,
    private_key_pem,
    read_key,
    seal_body,
    uncompressed_public_key_hex,
)
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.rules.report import LABEL, WHOLE_REPORT, part_bytes, sealed_parts
from crowdveil.errors import CampaignError, SettingsError
from tests.campaign.builders import build_campaign, relay_of_key

MODULE = Path(crowdveil.__file__).parent / "campaign" / "service" / "static" / "hpke.mjs"
VECTORS = Path(__file__).parents[2] / "vectors" / "hpke.json"
NODE = shutil.which("node") or ""
needs_node = pytest.mark.skipif(not NODE, reason="node is not installed")
UNITS = ("report", "cell")


def run_node(program: str, data: object) -> Any:
    """Return the JSON that a program prints; it imports `seal` and `sealBody`, and reads `data` from stdin."""
    head = (
        f"import {{ seal, sealBody }} from {json.dumps(MODULE.as_uri())};\nimport {{ readFileSync }} from 'node:fs';\n"
        "const data = JSON.parse(readFileSync(0, 'utf8'));\nconst bytes = (text) => Buffer.from(text, 'hex');\n"
    )
    command = [NODE, "--input-type=module", "--eval", head + program]
    done = subprocess.run(command, input=json.dumps(data), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


SEAL = """
const { subtle } = crypto;
const base64url = (text) => bytes(text).toString('base64url');
const point = data.enc.slice(2);
const jwk = { kty: 'EC', crv: 'P-256', x: base64url(point.slice(0, 64)), y: base64url(point.slice(64)) };
const curve = { name: 'ECDH', namedCurve: 'P-256' };
const keyPair = {
  publicKey: await subtle.importKey('raw', bytes(data.enc), curve, true, []),
  privateKey: await subtle.importKey('jwk', { ...jwk, d: base64url(data.skEm) }, curve, true, ['deriveBits']),
};
const sealed = await seal(bytes(data.pkRm), bytes(data.info), bytes(data.pt), { aad: bytes(data.aad), keyPair });
console.log(JSON.stringify(Buffer.from(sealed).toString('hex')));
"""


@needs_node
def test_the_page_seals_as_rfc_9180() -> None:
    """The page's module gives the ciphertext of the RFC's vector for the suite (appendix A.3.1, sequence number 0)."""
    vector = json.loads(VECTORS.read_text("ascii"))

    assert vector["enc"] + vector["ct"] == run_node(SEAL, vector)


def opened(campaign: Campaign, key: Any, sealed: bytes) -> bytes:
    """Return the body of a sealed report."""
    return b"".join(decrypt_part(key, info, part) for info, part in sealed_parts(campaign, sealed))


def sealing_campaign(key: Any, unit: str) -> Campaign:
    """Return a campaign of three tasks with a relay."""
    return build_campaign(tasks=3, content={"relay": relay_of_key(key, unit)}).campaign


@pytest.mark.parametrize("unit", UNITS)
def test_a_sealed_body_is_opened_by_the_key_alone(unit: str) -> None:
    """A body comes back whole; every body has the same length, and another key opens none of its parts."""
    key = new_key()
    campaign = sealing_campaign(key, unit)
    sealed = [seal_body(campaign, body) for body in (bytes((0, 1, 2)), bytes(3))]

    assert [bytes((0, 1, 2)), bytes(3)] == [opened(campaign, key, one) for one in sealed]
    assert {campaign.sent_bytes} == set(map(len, sealed))
    with pytest.raises(CampaignError, match="cannot be opened"):
        opened(campaign, new_key(), sealed[0])


def test_a_seal_is_bound_to_campaign_and_task() -> None:
    """A part of another campaign, and the part of another task, cannot be opened."""
    key = new_key()
    first, second = (sealing_campaign(key, "cell") for _ in range(2))
    sealed, size = seal_body(first, bytes(3)), part_bytes(first)

    with pytest.raises(CampaignError, match="cannot be opened"):
        opened(second, key, sealed)
    with pytest.raises(CampaignError, match="cannot be opened"):
        opened(first, key, sealed[size : 2 * size] + sealed[:size] + sealed[2 * size :])


def test_the_info_names_label_campaign_and_part() -> None:
    """A whole report is bound to the label, the digest of the campaign, and 2^32 - 1."""
    campaign = sealing_campaign(new_key(), "report")
    ((info, _),) = sealed_parts(campaign, bytes(campaign.sent_bytes))

    assert LABEL + campaign.digest + WHOLE_REPORT.to_bytes(4, "big") == info


FROM_PAGE = "console.log(JSON.stringify(Buffer.from(await sealBody(data.campaign, bytes(data.body))).toString('hex')));"


@needs_node
@pytest.mark.parametrize("unit", UNITS)
def test_python_opens_what_the_page_seals(unit: str) -> None:
    """The sealed bodies of the page's module have the same length as those of Python, and Python opens them."""
    key = new_key()
    campaign = sealing_campaign(key, unit)
    assert campaign.relay is not None
    fields = {"name": campaign.name, "relay": asdict(campaign.relay), "symbol_bytes": campaign.symbol_bytes}
    sealed = bytes.fromhex(run_node(FROM_PAGE, {"campaign": fields, "body": "020001"}))

    assert campaign.sent_bytes == len(sealed)
    assert bytes((2, 0, 1)) == opened(campaign, key, sealed)


def test_a_key_is_read_from_its_file() -> None:
    """A private key survives the way through its text; other texts are refused and not shown."""
    key = new_key()

    assert uncompressed_public_key_hex(key) == uncompressed_public_key_hex(read_key(private_key_pem(key)))
    for text in (b"", b"-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n"):
        with pytest.raises(SettingsError, match="PEM") as refused:
            read_key(text)
        assert "secret" not in str(refused.value)


def test_a_public_key_off_the_curve_is_refused() -> None:
    """A campaign whose key is no point is refused when it is read, and sealing refuses such a key, too."""
    relay = relay_of_key(new_key(), "report")
    campaign = build_campaign(content={"relay": relay}).campaign
    off = replace(relay, public_key="04" + "11" * 64)

    with pytest.raises(CampaignError, match="no point of P-256"):
        build_campaign(content={"relay": off})
    with pytest.raises(CampaignError, match="no point of the curve"):
        seal_body(replace(campaign, relay=off), bytes(4))

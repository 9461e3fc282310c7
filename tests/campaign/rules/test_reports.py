"""Bodies and files of reports, and the devices that make them."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from crowdveil.campaign.device import SealingDevice, answer_campaign
from crowdveil.campaign.rules.assignment_part import AssignmentPart
from crowdveil.campaign.rules.document import Campaign, Groups, digest_of_name
from crowdveil.campaign.rules.report import NOT_ANSWERED, ReportFile, decode_body, level_in_body, make_receipt
from crowdveil.campaign.rules.token import Link, Token, token_hash
from crowdveil.channels.alphabet import Categories
from crowdveil.cli import main
from crowdveil.errors import CampaignError, CertificateError, DeviceError
from crowdveil.standalone import device as one_file
from tests.campaign.builders import body_of, build_campaign, response
from tests.device_vectors import Replayed, read_vectors

PROTECTED = build_campaign(assignment=[[0, 1, 2, 3], [1, 3]]).campaign


@pytest.mark.parametrize(
    ("body", "tasks", "defect"),
    [
        (b"\0\0\0", range(4), "length"),
        (b"\0\0\0\0\0", range(4), "length"),
        (b"\0\0\0\4", range(4), "symbol"),
        (b"\0\0\0\xff", range(4), "symbol"),
        (b"\0\0\0\1", (1, 3), "symbol"),
    ],
)
def test_a_wrong_body_is_refused(body, tasks, defect):
    """Another length, a code that is no symbol, and cells beyond the slot's tasks, are refused."""
    with pytest.raises(CampaignError) as caught:
        decode_body(body, PROTECTED, 0, tasks)

    assert defect == caught.value.defect


def test_each_cell_is_checked_against_its_own_channel():
    """A code that another channel of the campaign has is refused where the cell's channel has not."""
    alphabet = Categories(("a", "b", "c"))
    many, few = response(alphabet), response(alphabet)
    table = ((1 << 47, 1 << 47),) * 4
    few = type(few)(alphabet, "protected", ("x", "y"), table)
    groups = Groups(choice=((0,), (1,)), task_group=(0,), slot_group=(0, 1))
    campaign = build_campaign(channels=[many, few], groups=groups, tasks=1, slots=2).campaign

    assert (2,) == decode_body(b"\2", campaign, 0, (0,))
    with pytest.raises(CampaignError, match="symbol"):
        decode_body(b"\2", campaign, 1, (0,))


VECTORS = read_vectors("campaigns.json")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_file_has_one_form(vector):
    """The report file of each vector is read and written again with the same bytes."""
    campaign = Campaign.from_bytes(vector["campaign"].encode())
    found = ReportFile.from_bytes(vector["report_file"].encode(), campaign)

    assert (vector["slot"], vector["report"]) == (found.token.slot, found.report)
    assert vector["body"] == found.body.hex()
    assert vector["report_file"].encode() == found.to_bytes(campaign)


@pytest.mark.parametrize(
    ("changed", "defect"),
    [
        ({"format": "crowdveil-report/2"}, "report file"),
        ({"note": "x"}, "report file"),
        ({"report": 5}, "report file"),
        ({"report": "A" * 32}, "report file"),
        ({"symbols": "0"}, "report file"),
        ({"campaign": "A" * 43}, "foreign"),
        ({"token": "A" * 26}, "token"),
        ({"symbols": "00" * 1000}, "oversize"),
    ],
)
def test_another_form_is_refused(changed, defect):
    """Each changed field is refused by its name."""
    vector = VECTORS[0]
    campaign = Campaign.from_bytes(vector["campaign"].encode())
    data = json.dumps({**json.loads(vector["report_file"]), **changed}, sort_keys=True, separators=(",", ":"))

    with pytest.raises(CampaignError) as refusal:
        ReportFile.from_bytes(data.encode(), campaign)

    assert defect == refusal.value.defect


@pytest.fixture
def answers(tmp_path):
    """Return a file with two answers."""
    path = tmp_path / "my.csv"
    path.write_text("task,label\nt0,quokka\nt2,narwhal\n")
    return path


def test_answers_become_one_report(service, tmp_path, answers):
    """A file of answers is sampled and sent once; a second call sends nothing."""
    for _ in range(2):
        device, _ = answer_campaign(service.built.link(0).text, answers=answers, home=tmp_path / "home")

        assert "receipted" == device.record["state"]
    assert 1 == len(service.bodies)


def test_a_refusal_is_a_device_error(service, tmp_path, answers):
    """A used link ends in a DeviceError with the sentence for the worker."""
    service.link_state = "used"

    with pytest.raises(DeviceError, match="has been used") as refusal:
        answer_campaign(service.built.link(0).text, answers=answers, home=tmp_path / "home")

    assert "link-used" == refusal.value.defect


def test_both_programs_continue_the_same_record(service, tmp_path):
    """What one program sampled, the other one sends: records and ledger are the same files."""
    link = service.built.link(0).text
    with one_file.Device(link, tmp_path) as first:
        first.open()
        first.answer(0, "quokka")
        first.sample()
        body = first.record["body"]
    with SealingDevice(link, tmp_path) as second:
        second.open()
        second.send()

    assert [bytes.fromhex(body)] == service.bodies


def test_the_librarys_checks_run_at_every_start(service, tmp_path, monkeypatch):
    """A campaign that the library refuses is refused although the one file accepts it."""
    with SealingDevice(service.built.link(0).text, tmp_path) as device:
        device.open()

        def refuse(_: bytes) -> None:
            raise CampaignError("text", "changed rule")

        monkeypatch.setattr("crowdveil.campaign.device.Campaign.from_bytes", refuse)
        with pytest.raises(CampaignError, match="changed rule"):
            device.open()


def test_command_line_answers_and_prints_json(service, tmp_path, answers):
    """`crowdveil campaign answer` prints the promise, and with --json one object on stdout."""
    home = tmp_path / "home"
    shown = CliRunner().invoke(
        main, ["campaign", "answer", service.built.link(0).text, "--answers", str(answers), "--home", str(home)]
    )
    second = ["campaign", "answer", service.built.link(1).text, "--answers", str(answers), "--json", "--home"]
    refused = CliRunner().invoke(main, [*second, str(home)])
    printed = CliRunner().invoke(main, [*second, str(tmp_path / "other")])

    assert "Done on this computer" in shown.stdout
    assert (1, "answered-before") == (refused.exit_code, json.loads(refused.stdout)["error"]["details"]["defect"])
    assert ("receipted", 4.0) == tuple(json.loads(printed.stdout)[key] for key in ("state", "epsilon_all_campaigns"))


def test_command_line_refuses_in_one_line(service, tmp_path, answers):
    """A budget that would be exceeded ends with exit code 1 and nothing sent; without a terminal answers are needed."""
    link = service.built.link(0).text
    home = ["--home", str(tmp_path / "home")]
    refused = CliRunner().invoke(main, ["campaign", "answer", link, "--answers", str(answers), "--budget", "1", *home])

    assert (1, []) == (refused.exit_code, service.bodies)
    assert "exceeds your budget" in refused.stderr
    assert 2 == CliRunner().invoke(main, ["campaign", "answer", link, *home]).exit_code
    assert 2 == CliRunner().invoke(main, ["campaign", "answer", link, "--budget", "nan", *home]).exit_code


def vector_id(vector):
    """Return the name of a vector."""
    return vector["name"]


@pytest.mark.parametrize("vector", read_vectors("campaigns.json"), ids=vector_id)
def test_bodies(vector):
    """The answers and random bytes of each vector give its body through the library's channels."""
    campaign, slot = Campaign.from_bytes(vector["campaign"].encode()), vector["slot"]
    part = AssignmentPart.from_bytes(vector["parts"][slot // 100].encode(), campaign, slot // 100)
    level = vector.get("level")
    source, codes = Replayed(bytearray.fromhex(vector["random"])), []
    for task, answer in zip(part.tasks(slot), vector["answers"], strict=True):
        channel = campaign.channel_of(slot, task, level)
        null = channel.alphabet.size if channel.participation == "protected" else 0
        drawn = int(channel.sample(np.array([null if answer is None else answer]), source)[0])
        codes.append(NOT_ANSWERED if answer is None and channel.participation == "public" else drawn)

    assert vector["campaign_name"] == campaign.name
    assert vector["tasks"] == list(part.tasks(slot))
    assert vector["body"] == body_of(codes, campaign, level).hex()
    assert tuple(codes) == decode_body(bytes.fromhex(vector["body"]), campaign, slot, vector["tasks"])
    assert level == level_in_body(bytes.fromhex(vector["body"]), campaign)


@pytest.mark.parametrize("vector", read_vectors("refused_campaigns.json"), ids=vector_id)
def test_campaigns_are_refused(vector):
    """Each altered campaign is refused with one of the stated defects."""
    with pytest.raises((CampaignError, CertificateError)) as refusal:
        Campaign.from_bytes(vector["campaign"].encode())

    assert refusal.value.defect in vector["defects"]


@pytest.mark.parametrize("vector", read_vectors("refused_parts.json"), ids=vector_id)
def test_assignment_parts_are_refused(vector):
    """Each altered assignment part is refused with one of the stated defects."""
    campaign = Campaign.from_bytes(vector["campaign"].encode())

    with pytest.raises(CampaignError) as refusal:
        AssignmentPart.from_bytes(vector["part"].encode(), campaign, 0)

    assert refusal.value.defect in vector["defects"]


@pytest.mark.parametrize("vector", read_vectors("tokens.json"), ids=vector_id)
def test_tokens_links_and_receipts(vector):
    """Token, hash, link and receipt are those of the vector."""
    token, body, key = (
        Token.from_text(vector["token"]),
        bytes.fromhex(vector["body"]),
        bytes.fromhex(vector["receipt_key"]),
    )
    receipt = make_receipt(key, vector["campaign"], vector["report"], body)
    url = vector["link"].partition("/a/")[0]

    assert vector["slot"] == token.slot
    assert vector["token_sha256"] == token_hash(digest_of_name(vector["campaign"]), token).hex()
    assert vector["link"] == Link(url, vector["campaign"], token).text
    assert vector["link_without_service"].endswith(Link(None, vector["campaign"], token).text)
    assert vector["receipt"].encode() == receipt

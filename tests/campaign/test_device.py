"""The library's device: the one-file device whose campaign passes the library's checks, too; the command line."""

import json

import pytest
from click.testing import CliRunner

from crowdveil.campaign.device import Device, answer_campaign
from crowdveil.cli import main
from crowdveil.errors import CampaignError, DeviceError
from crowdveil.standalone import device as one_file


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
    with Device(link, tmp_path) as second:
        second.open()
        second.send()

    assert [bytes.fromhex(body)] == service.bodies


def test_the_librarys_checks_run_at_every_start(service, tmp_path, monkeypatch):
    """A campaign that the library refuses is refused although the one file accepts it."""
    with Device(service.built.link(0).text, tmp_path) as device:
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

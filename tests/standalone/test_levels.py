"""Levels on the one-file device, and the ledger of several campaigns."""

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from crowdveil.campaign.rules.canonical_json import canonical_bytes
from crowdveil.campaign.rules.document import Groups
from crowdveil.campaign.rules.report import level_in_body
from crowdveil.channels.alphabet import Categories
from crowdveil.standalone import device as one_file
from crowdveil.standalone.checks import (
    ClaimLog,
    Refused,
    check_campaign,
    check_level,
    epsilon,
    parse_canonical,
)
from crowdveil.standalone.device import Device, read_ledger
from crowdveil.standalone.verification import verify
from tests.campaign.builders import BuiltCampaign, build_campaign, response
from tests.device_vectors import read_vectors

EPSILONS = (0.5, 1.0, 2.0)
TASKS = 4
ANSWERS = "task,label\nt0,quokka\nt2,narwhal\n"


@pytest.fixture
def built(tmp_path: Path) -> BuiltCampaign:
    """Return a campaign with three levels, without a service, in the folder `files`."""
    made = build_campaign(channels=[response(epsilon=one) for one in EPSILONS], url=None, content={"levels": 3})
    made.write(tmp_path / "files")
    return made


def device_of(built: BuiltCampaign, folder: Path) -> Device:
    """Return the device of the first worker."""
    return Device(built.link(0).text, folder / "home", folder / "files")


def run(built: BuiltCampaign, folder: Path, level: int | None, *, given: bool = True) -> Path:
    """Answer with a file, or in the terminal, and return the report."""
    answers = folder / "my.csv"
    answers.write_text(ANSWERS)
    with device_of(built, folder) as device:
        path = one_file.run(device, answers if given else None, folder / "out", None, level)
    assert path is not None
    return path


def body_of(path: Path) -> bytes:
    """Return the body in a report file."""
    return bytes.fromhex(json.loads(path.read_text())["symbols"])


@pytest.mark.parametrize("vector", read_vectors("levels.json"), ids=lambda vector: vector["name"])
def test_levels_of_the_vectors(vector):
    """A level is a whole number below the number of levels; anything else, and a float, is refused."""
    try:
        check_level(parse_canonical(vector["level"].encode()), vector["levels"])
        accepted = True
    except Refused:
        accepted = False

    assert vector["accepted"] == accepted


@pytest.mark.parametrize(("level", "index"), [(None, 0), (1, 0), (2, 1), (3, 2)])
def test_a_report_and_the_ledger_carry_the_chosen_level(built, tmp_path, level, index):
    """The first byte is the level, 0 without a choice; the ledger has exactly the ratio of its table, for all tasks."""
    body = body_of(run(built, tmp_path, level))
    (line,) = read_ledger(tmp_path / "home")
    ratio = Fraction(*built.campaign.certificates[index]["ratio"])

    assert (index, 1 + TASKS) == (body[0], len(body))
    assert index == level_in_body(body, built.campaign)
    assert (TASKS, ratio) == (line["cells"], Fraction(line["numerator"], line["denominator"]))


def test_nothing_is_answered_or_drawn_before_a_level_is_chosen(built, tmp_path):
    """Without a level a device keeps no answer, promises nothing and draws nothing."""
    with device_of(built, tmp_path) as device:
        device.open()
        for step in (lambda: device.answer(0, "quokka"), device.ledger_lines, device.sample):
            with pytest.raises(Refused, match="whole number below 3"):
                step()

        assert [] == read_ledger(tmp_path / "home")
        assert "verified" == device.record["state"]


@pytest.mark.parametrize("answered", [False, True])
def test_a_level_is_chosen_once(built, tmp_path, answered):
    """A chosen level stays, also after a new start and after an answer."""
    with device_of(built, tmp_path) as device:
        device.open()
        device.choose(1)
        if answered:
            device.answer(0, "quokka")
    with device_of(built, tmp_path) as device:
        device.open()
        with pytest.raises(Refused, match="chosen already"):
            device.choose(2)
        assert 1 == device.level
    with pytest.raises(Refused, match="chosen already"):
        run(built, tmp_path, 3)

    assert 1 == body_of(run(built, tmp_path, 2))[0]


@pytest.mark.parametrize("level", [3, True, "1"])
def test_a_record_with_another_level_is_refused(built, tmp_path, level):
    """A record that was changed on the disk draws nothing."""
    with device_of(built, tmp_path) as device:
        device.open()
        device._keep(**device.record, level=level)
    with device_of(built, tmp_path) as device, pytest.raises(Refused, match="whole number below 3"):
        device.open()


@pytest.mark.parametrize("level", [0, 4])
def test_the_command_names_the_levels(built, tmp_path, level):
    """Levels count from 1 on the command line."""
    with pytest.raises(Refused, match="from 1 to 3"):
        run(built, tmp_path, level)


def test_a_campaign_without_levels_has_none_to_choose(tmp_path):
    """A level for a campaign without levels is refused, on the command line and in a record."""
    built = build_campaign(url=None)
    built.write(tmp_path / "files")
    with pytest.raises(Refused, match="offers no levels"):
        run(built, tmp_path, 1)
    with device_of(built, tmp_path) as device:
        device.open()
        with pytest.raises(Refused, match="no levels"):
            device.choose(0)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("task,label\nt9,quokka\n", "is not yours"),
        ("task,label\nt0,unicorn\n", "none of the possible answers"),
        ("task\nt0\n", "needs the columns"),
    ],
)
def test_a_refused_file_of_answers_chooses_no_level(built, tmp_path, text, rule):
    """The file is checked before the level is kept: a worker who corrects it can still choose another one."""
    answers = tmp_path / "my.csv"
    answers.write_text(text)
    with device_of(built, tmp_path) as device:
        with pytest.raises(Refused, match=rule):
            one_file.run(device, answers, tmp_path / "out", None)
        assert device.level is None

    assert 2 == body_of(run(built, tmp_path, 3))[0]


@pytest.mark.parametrize(("typed", "index"), [(["", *[""] * 4, "yes"], 0), (["9", "x", "3", *[""] * 4, "yes"], 2)])
def test_the_level_is_asked_before_any_question(built, tmp_path, monkeypatch, capsys, typed, index):
    """The terminal offers each level with how sure anyone can be, preselects the first, and then shows the question."""
    replies = iter(typed)

    def reply(prompt: str) -> str:
        print(prompt)
        return next(replies)

    monkeypatch.setattr("builtins.input", reply)
    body = body_of(run(built, tmp_path, None, given=False))
    printed = capsys.readouterr().out
    before, after = printed.split("Your level [1]:", 1)

    assert index == body[0]
    assert "Which animal is it?" not in before
    assert "Which animal is it?" in after
    assert "Picture 0" not in before
    assert built.campaign.consent in before
    assert "it is not hidden" in before
    assert [f"{k}: {sure}" in before for k, sure in enumerate(("88.1 %", "98.3 %", "more than 99.9 %"), start=1)] == [
        True,
        True,
        True,
    ]
    assert before.count("more than 99.9 % (this hides almost nothing)") == 1
    assert f"Your level {index + 1} of 3 goes with it, and is not hidden." in after


def chosen(built: BuiltCampaign, folder: Path, slot: int, level: int) -> None:
    """Choose a level with the link of a slot, and stop before the first question."""
    with Device(built.link(slot).text, folder / "home", folder / "files") as device:
        device.open()
        device.choose(level)


def test_a_record_from_a_copy_draws_no_report_at_another_level(built, tmp_path):
    """A record that is restored as it was before the choice has the level of its lines in the ledger, or none."""
    with device_of(built, tmp_path) as device:
        device.open()
        before = (device.folder / "record.json").read_bytes()
    first = body_of(run(built, tmp_path, 1))
    (device.folder / "record.json").write_bytes(before)
    with pytest.raises(Refused, match="another link or level"):
        run(built, tmp_path, 3)

    assert 1 == len(read_ledger(tmp_path / "home"))
    assert 0 == first[0] == body_of(run(built, tmp_path, 1))[0]


def test_a_drawn_report_has_the_level_of_its_record(built, tmp_path):
    """A record whose level was changed after the draw enters no line of another level in the ledger."""
    run(built, tmp_path, 3)
    (tmp_path / "home" / "ledger.json").unlink()
    with device_of(built, tmp_path) as device:
        device._keep(**{**device.record, "level": 0})
    with pytest.raises(Refused, match="its report has another level"):
        run(built, tmp_path, None)

    assert [] == read_ledger(tmp_path / "home")


def test_a_level_counts_for_the_campaign_on_this_computer(built, tmp_path):
    """A second link of the campaign has the level that was chosen with the first: its questions were seen."""
    chosen(built, tmp_path, 0, 2)
    with Device(built.link(1).text, tmp_path / "home", tmp_path / "files") as device:
        device.open()

        assert 2 == device.level
        with pytest.raises(Refused, match="chosen already"):
            device.choose(0)


@pytest.mark.parametrize("given", [1, None])
def test_a_level_above_the_budget_is_not_kept(built, tmp_path, given):
    """The ledger with a level is compared before the level is kept; a lower one can then be chosen."""
    answers = tmp_path / "my.csv"
    answers.write_text(ANSWERS)
    with device_of(built, tmp_path) as device:
        with pytest.raises(Refused, match="exceeds your budget of 2"):
            one_file.run(device, answers, tmp_path / "out", Decimal(2), 3)
        assert device.level is None
        path = one_file.run(device, answers, tmp_path / "out", Decimal(2), given)

    assert path is not None
    assert 0 == body_of(path)[0]


def test_the_terminal_marks_levels_above_the_budget(built, tmp_path):
    """Each level that would exceed the budget, with the ledger, says so; the title is the curator's."""
    with device_of(built, tmp_path) as device:
        device.open()
        lines = one_file.offers(device, Decimal(2)).splitlines()

    assert [False, True, True] == ["exceeds your budget of 2" in line for line in lines[-3:]]
    assert "In the words of the curator:" == lines[0]


def test_another_level_for_a_drawn_report_is_refused(built, tmp_path):
    """A level on the command line that is not that of the drawn report is not passed over."""
    run(built, tmp_path, 2)
    with pytest.raises(Refused, match="chosen already"):
        run(built, tmp_path, 1)

    assert 1 == body_of(run(built, tmp_path, 2))[0]


ANSWERED_TWICE = Categories(("no", "yes"))
FIRST = build_campaign(channels=[response(ANSWERED_TWICE, 1.0)], url=None, assignment=[[0, 1], [2, 3], [0, 3]])


def in_two_groups(lists):
    """Return a campaign with two groups of tasks of epsilon 0.5 and 0.25."""
    groups = Groups(((0, 1),), (0, 1, 0, 1), (0, 0, 0))
    channels = [response(ANSWERED_TWICE, 0.5), response(ANSWERED_TWICE, 0.25)]
    return build_campaign(channels=channels, url=None, assignment=lists, groups=groups)


def answered(built, slot, folder):
    """Answer a campaign with "yes" throughout, and keep the report as a file."""
    with Device(built.link(slot).text, folder / "home", built.write(folder / built.campaign.name)) as device:
        device.open()
        text = one_file.promise(device)
        for cell in range(len(device.tasks)):
            device.answer(cell, "yes")
        device.sample()
        device.save_report(folder)
    return text


@pytest.mark.parametrize("again", [[0, 1], [2, 3]])
def test_another_campaign_of_the_same_curator_costs_the_sum(tmp_path, again):
    """The device says the sum, and that the same question asked again costs it; the ledger has the lines of both."""
    answered(FIRST, 0, tmp_path)
    text = answered(in_two_groups([again, [0, 1], [1, 2]]), 0, tmp_path)
    lines = read_ledger(tmp_path / "home")

    assert "epsilon 0.500 for a single answer, 0.750 for all of yours" in text
    assert "With all that this computer promised before: 2.750 to curators without a service" in text
    assert "The same question in another campaign costs the sum of both epsilons." in text
    assert [1, 1, 2] == sorted(line["cells"] for line in lines)
    assert Decimal("2.749") < epsilon(lines) <= Decimal("2.75")


def test_a_document_that_claims_a_round_is_asked_by_no_device(tmp_path):
    """A campaign that says what it follows is refused before anything is asked, as an unknown field."""
    one = {"campaign": FIRST.campaign.name, "cells": 2, "numerator": 11, "denominator": 4}
    data = canonical_bytes({**FIRST.campaign.fields, "earlier": [one]})

    assert not verify(data).holds
    with pytest.raises(Refused) as refusal:
        check_campaign(data, ClaimLog())
    assert "format" == refusal.value.name

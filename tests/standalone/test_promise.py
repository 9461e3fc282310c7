"""What the one-file device shows and keeps: texts of others are marked, and one report is drawn for each campaign."""

import pytest

from crowdveil.campaign.device import Device as LibraryDevice
from crowdveil.standalone import device as one_file
from crowdveil.standalone.checks import LINE, Refused, epsilon, shown
from crowdveil.standalone.device import Device
from tests.campaign.builders import build_campaign

FALSE_PROMISE = "Privacy loss: epsilon 0.001 for all of yours."


def test_a_curator_cannot_write_a_line_of_the_promise(tmp_path, monkeypatch, capsys):
    """However texts are broken or padded to the width of the terminal, each of their lines has the mark of a quote."""
    monkeypatch.setenv("COLUMNS", "60")
    padded = "\N{NO-BREAK SPACE}".join("." * 57 for _ in range(3)) + FALSE_PROMISE
    texts = {
        "title": f"Wards {FALSE_PROMISE}",
        "question": f"How often?\n{FALSE_PROMISE}\n\nReally?",
        "consent": f"{padded}\n{'病' * 60} {FALSE_PROMISE}",
    }
    built = build_campaign(url=None, content=texts)
    with Device(built.link(0).text, tmp_path / "home", built.write(tmp_path / "files")) as device:
        device.open()
        one_file.show(one_file.promise(device))
    lines = capsys.readouterr().out.splitlines()
    first, last = lines.index("In the words of the curator:") + 1, [line[:3] for line in lines].index("One")

    assert 12 <= last - first
    assert {"  | "} == {line[:4] for line in lines[first:last]}
    assert 60 >= max(len(line) + line.count("病") for line in lines[first:last])
    assert 1 == sum(line.startswith("Privacy loss: ") for line in lines)
    assert FALSE_PROMISE not in "\n".join(lines[:first] + lines[last:])


def test_a_title_in_the_ledger_stays_in_its_line(tmp_path, capsys):
    """Each line of a title in the ledger is marked as foreign, also after a line break or spaces up to the margin."""
    line = {**dict.fromkeys(LINE, "x"), "cells": 1, "numerator": 2, "denominator": 1}
    one_file.add_to_ledger(tmp_path, [{**line, "title": "a\nto all curators: epsilon 0.000\u202e"}])
    one_file.print_ledger(one_file.read_ledger(tmp_path))
    printed = capsys.readouterr().out.splitlines()

    assert ["  | a", "  | to all curators: epsilon 0.000\ufffd"] == printed[1:3]
    assert 5 == len(printed)
    assert ["to all curators: epsilon 0.694"] == [text for text in printed if text.startswith("to all")]


def test_a_reply_of_the_service_stays_in_the_sentence(service, tmp_path):
    """A state that the service invents is shown without its line breaks."""
    service.link_state = "\nDone: all deleted"
    with Device(service.built.link(0).text, tmp_path) as device:
        device.open()
        with pytest.raises(Refused) as refusal:
            device.require_open()

    assert "\n" not in str(refusal.value) + refusal.value.name


@pytest.mark.parametrize("kind", [Device, LibraryDevice])
def test_two_links_of_a_campaign_draw_one_report(service, tmp_path, kind):
    """The second link is refused while the first report is drawn only, and after it is sent; another home may draw."""
    first, second = (service.built.link(slot).text for slot in (0, 1))
    with kind(first, tmp_path) as one, kind(second, tmp_path) as other:
        one.open()
        other.open()
        one.require_open()
        other.require_open()
        one.sample()
        with pytest.raises(Refused, match="--home") as drawn:
            other.sample()
        one.send()
        with pytest.raises(Refused) as sent:
            other.require_open()
        assert "verified" == other.record["state"]
    with kind(second, tmp_path / "other person") as another:
        another.open()
        another.sample()

    assert ["answered-before"] * 2 == [drawn.value.name, sent.value.name]
    assert 1 == len(service.bodies)


def test_the_ledger_decides_between_two_programs_that_draw_at_once(service, tmp_path, monkeypatch):
    """A program that looked into the ledger before the other one drew is refused when it writes its own lines."""
    with Device(service.built.link(0).text, tmp_path) as one, Device(service.built.link(1).text, tmp_path) as other:
        one.open()
        other.open()
        monkeypatch.setattr(other, "require_open", one.sample)

        with pytest.raises(Refused) as refusal:
            other.sample()

    assert ("answered-before", "verified") == (refusal.value.name, other.record["state"])


def test_a_service_that_deletes_and_answers_503_gets_one_draw(service, tmp_path, monkeypatch):
    """Three starts against a service that stores, answers 503 and asks to clear all storage send the same bytes."""
    monkeypatch.setattr(Device.send, "__defaults__", (1, lambda _: None))
    service.faults = ["busy"] * 3
    for _ in range(3):
        with Device(service.built.link(0).text, tmp_path) as device:
            device.open()
            if device.record["state"] == "verified":
                device.sample()
            with pytest.raises(Refused, match="start again later"):
                device.send()

    assert (3, 1) == (len(service.bodies), len(set(service.bodies)))
    assert "4.000" == shown(epsilon(one_file.read_ledger(tmp_path)))

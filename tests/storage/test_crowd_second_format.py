"""`crowd.json` of the second format is read as the third: parts of its texts become facts, and nothing is believed."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import ReportsError
from crowdveil.storage.crowd import CrowdRecord, read_crowd

NAME = "Q" * 43
PROMISE = "epsilon = 2 per cell, participation protected"
SECOND: dict[str, Any] = {
    "format": "crowdveil-crowd/2",
    "tasks": ["a", "b"],
    "workers": ["u", "v"],
    "simulation": False,
    "mechanism": "randomized-response (epsilon=2.0)",
    "guarantee": PROMISE,
    "certificate_sha256": "ab" * 32,
    "kind": "categorical",
    "alphabet": {"kind": "categories", "names": ["no", "yes"], "ordered": False},
    "seed": None,
    "lists_from_answers": [],
    "edited": False,
    "reports_sha256": "cd" * 32,
    "assignment_sha256": None,
    "blocks_sha256": None,
}


def read(folder: Path, **changes: Any) -> CrowdRecord:
    """Write a crowd.json of the second format with some changes, and read it."""
    (folder / "crowd.json").write_text(json.dumps(SECOND | changes), "utf-8")
    return read_crowd(folder / "crowd.json")


def test_every_field_is_read(tmp_path: Path) -> None:
    """Names, alphabet, digests and marks are those of the file; the guarantee stays the text that it was."""
    crowd = read(tmp_path)
    facts = crowd.collection

    assert (("a", "b"), ("u", "v")) == crowd.task_and_worker_names
    assert Categories(("no", "yes")) == crowd.alphabet
    assert ("cd" * 32, "", None) == (crowd.reports_sha256, crowd.blocks_sha256, crowd.assignment_sha256)
    assert ("randomized-response", "randomized-response (epsilon=2.0)") == (facts.mechanism, facts.description)
    assert (PROMISE, False, "protected") == (facts.stated_guarantee, facts.voided, facts.participation)
    assert ("ab" * 32, None, None, True) == (facts.certificate_sha256, facts.campaign, facts.question, facts.linked)
    assert facts.guarantee_text.startswith(PROMISE)
    assert crowd.asked.cells_known


def test_campaign_question_and_cells_without_names_become_facts(tmp_path: Path) -> None:
    """What followed the settings in the text of the mechanism is a field each, and leaves the description."""
    plain = read(tmp_path, mechanism=f"one-layer; campaign {NAME}").collection
    asked = read(tmp_path, mechanism=f"one-layer; question 2 of 3; campaign {NAME}").collection
    shuffled = read(tmp_path, mechanism=f"one-layer; cells without names; campaign {NAME}").collection

    assert (NAME, None, True, "one-layer") == (plain.campaign, plain.question, plain.linked, plain.description)
    assert (NAME, (2, 3), True, "one-layer") == (asked.campaign, asked.question, asked.linked, asked.description)
    assert (NAME, False, "one-layer") == (shuffled.campaign, shuffled.linked, shuffled.description)
    assert {"one-layer"} == {one.mechanism for one in (plain, asked, shuffled)}


@pytest.mark.parametrize(
    ("changes", "voided"),
    [
        ({"simulation": True, "seed": 4, "guarantee": f"none: a simulation; devices would have: {PROMISE}"}, True),
        ({"lists_from_answers": ["tasks"], "guarantee": "none: tasks were taken from the answers"}, True),
        ({"edited": True, "guarantee": f"unknown: the reports were edited; stated before: {PROMISE}"}, True),
        ({"guarantee": "none: some other reason"}, True),
        ({"guarantee": "epsilon = 1.5 (claimed 1), delta = 1e-05 per worker, participation public; a note"}, False),
    ],
    ids=["simulation", "lists", "edited", "reason", "guarantee"],
)
def test_what_voided_a_guarantee_still_does(tmp_path: Path, changes: dict[str, Any], voided: bool) -> None:
    """Marks and reasons of the second format leave no guarantee; its guarantees are read with their participation."""
    facts = read(tmp_path, **changes).collection

    assert voided == facts.voided == facts.guarantee_text.startswith(("none: ", "unknown: "))
    assert 1 >= len(re.findall("unknown: ", facts.guarantee_text))
    assert ("public" if "public;" in changes["guarantee"] else "protected") == facts.participation or voided


def test_it_is_written_as_the_third(tmp_path: Path) -> None:
    """What is read from the second format and written again is read as the same."""
    mechanism = f"one-layer; question 2 of 3; cells without names; campaign {NAME}"
    for changes in ({}, {"mechanism": mechanism}, {"guarantee": "none: some other reason"}, {"edited": True}):
        crowd = read(tmp_path, **changes)
        (tmp_path / "crowd.json").write_bytes(crowd.to_json_bytes())

        assert "crowdveil-crowd/3" == json.loads((tmp_path / "crowd.json").read_bytes())["format"]
        assert crowd == read_crowd(tmp_path / "crowd.json")


def test_numbers_have_a_scale_or_none(tmp_path: Path) -> None:
    """A crowd of numbers names its scale, or no alphabet."""
    scale = {"kind": "scale", "low": 0, "high": 5, "step": 1}

    assert Scale(0, 5) == read(tmp_path, kind="numeric", alphabet=scale).alphabet
    assert read(tmp_path, kind="numeric", alphabet=None).alphabet is None


MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown field": ({"extra": 1}, "other fields"),
    "a field of the third format": ({"question": None}, "other fields"),
    "a guarantee in free words": ({"guarantee": "perfect secrecy, epsilon = 0"}, "must be a guarantee as crowdveil"),
    "a guarantee on two lines": ({"guarantee": f"{PROMISE}; a\nb"}, "'(stated_)?guarantee' of a crowd must be"),
    "a guarantee with an escape sequence": ({"guarantee": f"{PROMISE}; \x1b[8m"}, "must be printing"),
    "no text as a guarantee": ({"guarantee": None}, "must be a guarantee as crowdveil"),
    "a mechanism with an escape sequence": ({"mechanism": "laplace\x1b[8m"}, "must be printing"),
    "no text as a mechanism": ({"mechanism": 1}, "of a crowd must be"),
    "another kind": ({"kind": "numeric"}, "'kind' of a crowd must fit"),
    "no alphabet of labels": ({"alphabet": None}, "'kind' of a crowd must fit"),
    "a wrong type": ({"simulation": "yes"}, "'simulation' of a crowd .* is of another form"),
    "a repeated task": ({"tasks": ["a", "a"]}, "'tasks' of a crowd must be distinct"),
    "a seed that is real": ({"seed": 3}, "with a seed is a simulation"),
    "a question that does not exist": (
        {"mechanism": f"one-layer; question 3 of 2; campaign {NAME}"},
        "'question' of a crowd",
    ),
    "no digest": ({"reports_sha256": None}, "by 'reports_sha256' or blocks by 'blocks_sha256'"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_crowd_is_refused(tmp_path: Path, name: str) -> None:
    """What the second format refused is still refused, with the name of the file."""
    changes, message = MALFORMED[name]

    with pytest.raises(ReportsError, match=message) as caught:
        read(tmp_path, **changes)
    assert str(tmp_path / "crowd.json") == caught.value.source


def test_a_missing_field_is_refused(tmp_path: Path) -> None:
    """Every field of the second format is needed."""
    for field in SECOND.keys() - {"format"}:
        data = {name: value for name, value in SECOND.items() if name != field}
        (tmp_path / "crowd.json").write_text(json.dumps(data), "utf-8")
        with pytest.raises(ReportsError, match="other fields"):
            read_crowd(tmp_path / "crowd.json")

"""Campaign documents: every field is checked, with levels and with several questions."""

import json
import math
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from crowdveil.campaign.rules.canonical_json import canonical_bytes
from crowdveil.campaign.rules.document import Campaign, Groups, Picture, Question, Task, digest_of_name
from crowdveil.campaign.rules.report import decode_body, level_in_body
from crowdveil.campaign.statement.sentences import level_guarantees
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import CampaignError, CertificateError
from crowdveil.mechanisms import QuantizedResponse
from crowdveil.mechanisms.laplace import Laplace
from crowdveil.standalone.checks import ClaimLog, check_campaign, epsilon
from crowdveil.standalone.verification import verify
from tests.campaign.builders import LABELS, build_campaign, build_questions, response

PICTURE = {"sha256": "0" * 64, "type": "image/png", "bytes": 10, "alt": "a fish"}
SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "reference" / "schemas" / "campaign.json").read_text("utf-8"))
TASK = {"id": "t0", "text": "Fish?", "picture": None}
SOUND = build_campaign(
    channels=[response(epsilon=1.0), response(epsilon=2.0)],
    groups=Groups(choice=((0, 1),), task_group=(0, 1), slot_group=(0, 0, 0)),
    tasks=2,
    content={"tasks": (Task("a", "A?", Picture("0" * 64, "image/png", 10, "a fish")), Task("b", "B?"))},
).campaign.to_bytes()


def fields():
    """Return the fields of a small campaign, as JSON values."""
    return json.loads(build_campaign().campaign.to_bytes())


def refusal(data):
    """Return the defect by which a campaign is refused."""
    with pytest.raises((CampaignError, CertificateError)) as caught:
        Campaign.from_bytes(data)
    return caught.value.defect


def test_a_campaign_is_named_by_its_bytes():
    """Reading the bytes gives the same campaign and name; the same texts made twice have other names."""
    campaign = build_campaign().campaign

    again = Campaign.from_bytes(campaign.to_bytes())

    assert campaign.to_bytes() == again.to_bytes()
    assert campaign.name == again.name
    assert 43 == len(campaign.name)
    assert campaign.digest == digest_of_name(campaign.name)
    assert campaign.name != build_campaign().campaign.name


@pytest.mark.parametrize("name", ["", "A" * 42, "A" * 42 + "B", "A" * 44, "é" * 43, "A" * 42 + "="])
def test_another_text_is_no_name(name):
    """A name is 43 characters of base64url whose spare bits are 0."""
    with pytest.raises(CampaignError, match="name"):
        digest_of_name(name)


def test_fields_are_converted():
    """Days, tasks, pictures and channels are values of their own types."""
    task = Task("one", "Whale?", Picture("ab" * 32, "image/webp", 17, "a whale"))

    campaign = build_campaign(slots=101, assignment=[[0]] * 101, tasks=1).campaign
    with_picture = build_campaign(content={"tasks": (task,)}, tasks=1).campaign

    assert date(2020, 1, 1) == campaign.opens
    assert (Task("t0", "Picture 0"),) == campaign.tasks
    assert 2 == len(campaign.assignment_parts)
    assert LABELS == campaign.alphabet
    assert campaign.channels[0].rows == response().rows
    assert (task,) == with_picture.tasks


def test_groups_choose_the_channel_of_a_cell():
    """A worker's group and a task's group choose the channel; the campaign promises the worst of them."""
    weak, strong = response(epsilon=2.0), response(epsilon=0.5)
    groups = Groups(choice=((0, 1), (1, 1)), task_group=(0, 0, 1, 1), slot_group=(0, 1, 1))

    campaign = build_campaign(channels=[weak, strong], groups=groups).campaign

    assert weak.epsilon == campaign.channel_of(0, 0).epsilon
    assert strong.epsilon == campaign.channel_of(0, 2).epsilon
    assert strong.epsilon == campaign.channel_of(1, 0).epsilon
    assert weak.epsilon == campaign.epsilon
    assert groups == campaign.groups


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "participation", "expected"),
    [(255, "protected", 1), (256, "protected", 2), (255, "public", 1), (256, "public", 2)],
)
def test_a_symbol_has_one_byte_if_all_fit(labels, participation, expected):
    """256 report symbols fit into a byte; with public participation 255, as one code means "not answered"."""
    channel = response(Categories(tuple(f"label {k}" for k in range(labels))), participation=participation)

    campaign = build_campaign(channels=[channel], tasks=2).campaign

    assert expected == campaign.symbol_bytes
    assert 2 * expected == campaign.body_bytes


@pytest.mark.parametrize("alphabet", [Scale(0, 10), Scale(0, 0.3, 0.1), Scale(-1, 1, 0.25)])
def test_labels_of_a_scale_are_its_grid_points(alphabet):
    """A scale with fractions is written and read like labels."""
    campaign = build_campaign(channels=[Laplace(alphabet=alphabet, epsilon=1.0).channel()]).campaign

    assert alphabet.names == campaign.labels
    assert alphabet == campaign.alphabet


@pytest.mark.parametrize(
    ("day", "state"),
    [("2027-01-09", "early"), ("2027-01-10", "open"), ("2027-01-17", "open"), ("2027-01-18", "closed")],
)
def test_the_days_of_opening_and_closing_are_open(day, state):
    """Reports are accepted from the first to the last day, both included."""
    campaign = build_campaign(opens=date(2027, 1, 10), closes=date(2027, 1, 17)).campaign

    assert state == campaign.state_on(date.fromisoformat(day))


@pytest.mark.parametrize(
    ("changes", "defect"),
    [
        ({"title": ""}, "text"),
        ({"question": 1}, "text"),
        ({"consent": None}, "text"),
        ({"language": "English"}, "text"),
        ({"url": "https://example.org/"}, "url"),
        ({"url": "https://example.org?a"}, "url"),
        ({"url": "https://user@example.org"}, "url"),
        ({"opens": "2027-13-01"}, "day"),
        ({"opens": "2027-1-1"}, "day"),
        ({"min_reports": 0}, "number"),
        ({"min_reports": 4}, "number"),
        ({"min_reports": True}, "number"),
        ({"purge_after_days": -1}, "number"),
        ({"labels": ["quokka", "zebrafish", "narwhal"]}, "labels"),
        ({"labels": "zebrafish"}, "labels"),
        ({"tasks": []}, "task"),
        ({"tasks": [{**TASK, "more": 1}]}, "task"),
        ({"tasks": [{**TASK, "text": ""}]}, "task"),
        ({"tasks": [{**TASK, "picture": {**PICTURE, "sha256": "A" * 64}}]}, "picture"),
        ({"tasks": [{**TASK, "picture": {**PICTURE, "bytes": 0}}]}, "picture"),
        ({"tasks": [{**TASK, "picture": {**PICTURE, "alt": ""}}]}, "picture"),
        ({"slots": 101}, "part"),
        ({"symbol_bytes": 2}, "number"),
        ({"salt": "0" * 31}, "salt"),
        ({"certificates": [{}]}, "format"),
    ],
)
def test_an_altered_field_is_refused(changes, defect):
    """Each altered document is refused by the name of its defect, as those of the shared vectors."""
    assert defect == refusal(canonical_bytes({**fields(), **changes}))


@pytest.mark.parametrize(
    "groups",
    [
        None,
        {"choice": [[0]], "task_group": [0] * 4},
        {"choice": [[0, 1], [0]], "task_group": [0] * 4, "slot_group": [0] * 3},
        {"choice": [[0, 0]], "task_group": [0] * 4, "slot_group": [0] * 3},
        {"choice": [[0, 2]], "task_group": [0] * 4, "slot_group": [0] * 3},
        {"choice": [[0, 1]], "task_group": [0] * 3, "slot_group": [0] * 3},
        {"choice": [[0, 1]], "task_group": [0] * 4, "slot_group": [0, 0, 1]},
    ],
)
def test_groups_that_do_not_fit_are_refused(groups):
    """With several certificates the groups must be a rectangle that uses all of them, and cover tasks and slots."""
    certificates = [response(epsilon=epsilon).certificate() for epsilon in (1.0, 2.0)]

    assert "groups" == refusal(canonical_bytes({**fields(), "certificates": certificates, "groups": groups}))


def test_a_document_beyond_two_megabytes_is_refused():
    """The size is checked on the received bytes."""
    assert "oversize" == refusal(b" " * 2_000_001)


def test_the_schema_describes_the_document():
    """Campaigns with and without groups pass the schema; other fields, types and pictures do not."""
    Draft202012Validator.check_schema(SCHEMA)
    channels = [response(epsilon=epsilon) for epsilon in (1.0, 2.0)]
    groups = Groups(choice=((0, 1),), task_group=(0, 0, 1, 1), slot_group=(0, 0, 0))
    grouped = json.loads(build_campaign(channels=channels, groups=groups, url=None).campaign.to_bytes())
    valid = Draft202012Validator(SCHEMA).is_valid

    assert valid(fields())
    assert valid({**fields(), "tasks": [{**TASK, "picture": PICTURE}]})
    assert valid(grouped)
    for change in ({"extra": 1}, {"title": ""}, {"min_reports": 0}, {"tasks": [{**TASK, "picture": {}}]}, {"salt": ""}):
        assert not valid({**fields(), **change})


@st.composite
def altered_fields(draw, document, names=()):
    """Draw a document in which one value, at any depth, of any field or of those with these names is another one."""
    value = json.loads(document)
    inner, path = {name: value[name] for name in names} or value, []
    while isinstance(inner, dict | list) and inner and draw(st.integers(0, 5)) > 0:
        path.append(draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner)))))
        inner = inner[path[-1]]
    odd = st.sampled_from([None, True, 0, 1, -1, 2**52, 0.5, "", "x", "0" * 64, [], [[]], {}, {"a": []}, [None], [0]])
    if not path:
        return draw(odd)
    parent = value
    for key in path[:-1]:
        parent = parent[key]
    if draw(st.booleans()):
        parent[path[-1]] = draw(odd)
    elif isinstance(parent, dict):
        del parent[path[-1]]
    else:
        parent.append(parent[path[-1]])
    return value


@pytest.mark.slow
@settings(max_examples=300)
@given(altered_fields(SOUND))
def test_no_alteration_is_a_crash(value):
    """A document with any value altered, removed or repeated is read or refused by its defect, never otherwise."""
    data = canonical_bytes(value)
    try:
        campaign = Campaign.from_bytes(data)
    except (CampaignError, CertificateError):
        return

    assert data == campaign.to_bytes()
    assert campaign.body_bytes == campaign.cells * campaign.symbol_bytes


CAMPAIGN = build_campaign(channels=[response(epsilon=one) for one in (0.5, 1.0, 2.0)], content={"levels": 3}).campaign
BLOCKS = [QuantizedResponse(alphabet=Scale(0, 9), epsilon=one, cuts=cuts) for one, cuts in ((1, (5,)), (2, (2, 4, 6)))]
UNLIKE = build_campaign(channels=[one.channel() for one in BLOCKS], content={"levels": 2}).campaign
"""Levels of three and of five symbols."""


@pytest.mark.parametrize(
    ("body", "defect"),
    [
        ("01020301", "length"),
        ("0102030100", None),
        ("010203010001", "length"),
        ("0302030100", "level"),
        ("ff02030100", "level"),
        ("0104030100", "symbol"),
        ("", "length"),
    ],
    ids=["no level", "sound", "a byte too many", "too high", "255", "no symbol", "nothing"],
)
def test_other_bodies_are_refused(body, defect):
    """A body without the level, with a level outside the campaign, or with another symbol has a named defect."""
    data = bytes.fromhex(body)
    if defect is None:
        assert (2, 3, 1, 0) == decode_body(data, CAMPAIGN, 0, range(4))
        return
    with pytest.raises(CampaignError) as refusal:
        decode_body(data, CAMPAIGN, 0, range(4))

    assert defect == refusal.value.defect


@pytest.mark.parametrize("level", [3, -1, True, 1.0, "1", None])
def test_other_levels_have_no_channel(level):
    """A level outside the campaign, or of another type, has no channel."""
    with pytest.raises(CampaignError) as refusal:
        CAMPAIGN.channel_of(0, 0, level)

    assert "level" == refusal.value.defect


def test_a_symbol_of_another_level_is_refused():
    """Symbol 4 exists at the second level only."""
    assert (4, 0, 0, 0) == decode_body(bytes([1, 4, 0, 0, 0]), UNLIKE, 0, range(4))
    with pytest.raises(CampaignError, match="no report symbol"):
        decode_body(bytes([0, 4, 0, 0, 0]), UNLIKE, 0, range(4))


def test_a_campaign_without_levels_has_no_level():
    """The first byte of a report without levels is a symbol, and a level is refused."""
    plain = build_campaign().campaign

    assert level_in_body(bytes(4), plain) is None
    assert "levels" not in json.loads(plain.to_bytes())
    with pytest.raises(CampaignError, match="no levels"):
        plain.channel_of(0, 0, 0)


def test_the_campaign_promises_the_last_level_and_a_worker_the_own():
    """Epsilons are computed from the integer tables: the largest for the campaign, and one for each level."""
    for level, certificate in enumerate(CAMPAIGN.certificates):
        ratio = max(Fraction(max(column), min(column)) for column in zip(*certificate["rows"], strict=True))
        assert 0 <= level_guarantees(CAMPAIGN)[level].epsilon - 4 * math.log(ratio) < 1e-12

    assert CAMPAIGN.worker_epsilon == level_guarantees(CAMPAIGN)[2].epsilon
    assert CAMPAIGN.epsilon == CAMPAIGN.channels[2].epsilon
    assert LABELS.names == CAMPAIGN.labels


GRADES = QuantizedResponse(alphabet=Scale(0, 10), epsilon=2.0, participation="protected", cuts=(4, 7)).channel()
ANIMALS = response(epsilon=0.5)
BUILT = build_questions([ANIMALS, GRADES], [3, 2], [[0, 1, 3], [1, 2, 3, 4], [2, 4]])
QUESTIONS_CAMPAIGN = BUILT.campaign


def exact_loss(campaign: Campaign, loads: list[int]) -> Any:
    """Return the sum of cells times ln of the largest ratio of a column, with 50 digits, by loops over the tables."""
    lines = []
    for certificate, cells in zip(campaign.certificates, loads, strict=True):
        worst = (1, 1)
        for column in zip(*certificate["rows"], strict=True):
            for high in column:
                for low in column:
                    worst = (high, low) if high * worst[1] > worst[0] * low else worst
        lines.append({"cells": cells, "numerator": worst[0], "denominator": worst[1]})
    return epsilon(lines)


def test_each_question_has_its_text_its_load_and_its_channel():
    """The document names the questions and the most tasks of a worker for each; a cell has its question's channel."""
    assert (Question("Question 1?", 2), Question("Question 2?", 2)) == QUESTIONS_CAMPAIGN.questions
    assert ("Question 1?", LABELS.names, 4, 4) == (
        QUESTIONS_CAMPAIGN.question,
        QUESTIONS_CAMPAIGN.labels,
        QUESTIONS_CAMPAIGN.cells,
        QUESTIONS_CAMPAIGN.body_bytes,
    )
    assert [QUESTIONS_CAMPAIGN.channel_of(0, task).rows for task in range(5)] == [ANIMALS.rows] * 3 + [GRADES.rows] * 2
    assert "questions" not in json.loads(build_campaign().campaign.to_bytes())
    assert Draft202012Validator(SCHEMA).is_valid(json.loads(QUESTIONS_CAMPAIGN.to_bytes()))


def test_a_worker_is_promised_the_sum_over_the_questions():
    """The loss of all answers is that of 2 answers of each table, rounded up by less than 1e-12."""
    exact = exact_loss(QUESTIONS_CAMPAIGN, [2, 2])
    found = verify(QUESTIONS_CAMPAIGN.to_bytes())

    assert 0 <= QUESTIONS_CAMPAIGN.worker_epsilon - float(exact) < 1e-12
    assert 0 <= (found.worker_epsilon or 0) - float(exact) < 1e-12
    assert (4, GRADES.epsilon) == (found.answers, found.answer_epsilon)
    assert QUESTIONS_CAMPAIGN.worker_epsilon < QUESTIONS_CAMPAIGN.cells * QUESTIONS_CAMPAIGN.epsilon - 1


@settings(max_examples=200)
@given(altered_fields(QUESTIONS_CAMPAIGN.to_bytes(), ("questions", "groups", "labels", "cells")))
def test_no_alteration_is_a_crash_or_another_promise(value):
    """An altered document of two questions is refused by its defect, or promises the sum over its tables."""
    data = canonical_bytes(value)
    outcome = verify(data)
    try:
        campaign = Campaign.from_bytes(data)
    except (CampaignError, CertificateError):
        assert not outcome.holds
        return

    fields, _ = check_campaign(data, ClaimLog())
    loads = [question["cells"] for question in fields["questions"]]
    assert 0 <= campaign.worker_epsilon - float(exact_loss(campaign, loads)) < 1e-12
    assert outcome.holds

"""Several questions in one campaign: the document, its parts, the loss of a worker, and bodies."""

import json

from hypothesis import given, settings
from jsonschema import Draft202012Validator

from crowdveil.campaign.canonical import canonical_bytes
from crowdveil.campaign.document import Campaign, Question
from crowdveil.channels.alphabet import Scale
from crowdveil.errors import CampaignError, CertificateError
from crowdveil.mechanisms import QuantizedResponse
from crowdveil.standalone.checks import Claims, check_campaign, epsilon
from crowdveil.standalone.verification import verify
from tests.campaign.builders import LABELS, build_campaign, build_questions, response
from tests.campaign.test_document import SCHEMA, altered_fields

GRADES = QuantizedResponse(alphabet=Scale(0, 10), epsilon=2.0, participation="protected", cuts=(4, 7)).channel()
ANIMALS = response(epsilon=0.5)
BUILT = build_questions([ANIMALS, GRADES], [3, 2], [[0, 1, 3], [1, 2, 3, 4], [2, 4]])
CAMPAIGN = BUILT.campaign


def exact_loss(campaign: Campaign, loads: list[int]) -> object:
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
    assert (Question("Question 1?", 2), Question("Question 2?", 2)) == CAMPAIGN.questions
    assert ("Question 1?", LABELS.names, 4, 4) == (
        CAMPAIGN.question,
        CAMPAIGN.labels,
        CAMPAIGN.cells,
        CAMPAIGN.body_bytes,
    )
    assert [CAMPAIGN.channel_of(0, task).rows for task in range(5)] == [ANIMALS.rows] * 3 + [GRADES.rows] * 2
    assert "questions" not in json.loads(build_campaign().campaign.to_bytes())
    assert Draft202012Validator(SCHEMA).is_valid(json.loads(CAMPAIGN.to_bytes()))


def test_a_worker_is_promised_the_sum_over_the_questions():
    """The loss of all answers is that of 2 answers of each table, rounded up by less than 1e-12."""
    exact = exact_loss(CAMPAIGN, [2, 2])
    found = verify(CAMPAIGN.to_bytes())

    assert 0 <= CAMPAIGN.worker_epsilon - float(exact) < 1e-12
    assert 0 <= (found.worker_epsilon or 0) - float(exact) < 1e-12
    assert (4, GRADES.epsilon) == (found.answers, found.answer_epsilon)
    assert CAMPAIGN.worker_epsilon < CAMPAIGN.cells * CAMPAIGN.epsilon - 1


@settings(max_examples=200)
@given(altered_fields(CAMPAIGN.to_bytes(), ("questions", "groups", "labels", "cells")))
def test_no_alteration_is_a_crash_or_another_promise(value):
    """An altered document of two questions is refused by its defect, or promises the sum over its tables."""
    data = canonical_bytes(value)
    outcome = verify(data)
    try:
        campaign = Campaign.from_bytes(data)
    except (CampaignError, CertificateError):
        assert not outcome.holds
        return

    fields, _ = check_campaign(data, Claims())
    loads = [question["cells"] for question in fields["questions"]]
    assert 0 <= campaign.worker_epsilon - float(exact_loss(campaign, loads)) < 1e-12
    assert outcome.holds

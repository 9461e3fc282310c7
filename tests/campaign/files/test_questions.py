"""Several questions: exported collections, what `infer` reads of them, and the statement of their privacy."""

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.campaign.files.campaign_reports import AcceptedReport, read_accepted_report, write_questions
from crowdveil.campaign.rules.report import decode_body
from crowdveil.campaign.statement.claims import audit_file
from crowdveil.campaign.statement.collection import (
    joint_statement_of_questions,
    statement_of_evidence,
    statement_of_source,
)
from crowdveil.campaign.statement.document import campaign_statement
from crowdveil.campaign.statement.source import read_stated_source
from crowdveil.channels.alphabet import NULL, Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.cli import main
from crowdveil.errors import CrowdveilError, ReportsError, SettingsError
from crowdveil.files.filesystem import temporary_folder
from crowdveil.mechanisms import Laplace
from crowdveil.privacy.statement import OTHERS, statement_sentences
from crowdveil.standalone.checks import epsilon
from crowdveil.standalone.device import Device
from crowdveil.storage.evidence import read_evidence
from tests.campaign.builders import BuiltCampaign, build_questions, response

YES, GRADES = Categories(("no", "yes")), Scale(0, 4)
CHANNELS = [response(YES, 1.0), Laplace(alphabet=GRADES, epsilon=0.5, participation="protected").channel()]
BUILT = build_questions(CHANNELS, [3, 2], [[0, 1, 3], [1, 2, 3, 4], [2, 4], [0]], url=None)


def report(built: BuiltCampaign, slot: int, codes: list[int]) -> AcceptedReport:
    """Return a report with these symbols."""
    return AcceptedReport(slot, built.tasks(slot), codes)


REPORTS = [report(BUILT, 0, [0, 1, 2]), report(BUILT, 1, [1, 1, 4, 0]), report(BUILT, 2, [0, 3]), report(BUILT, 3, [2])]


@st.composite
def campaigns(draw: st.DrawFn) -> tuple[BuiltCampaign, list[list[int | None]]]:
    """Draw a campaign of two to four questions on labels and scales, and the answers of each worker (None: none)."""
    participation: Any = draw(st.sampled_from(["protected", "public"]))
    channels, tasks = [], []
    for number in range(draw(st.integers(2, 4))):
        loss = draw(st.sampled_from([0.1, 1.0, 6.0]))
        if draw(st.booleans()):
            names = tuple(f"q{number}label{k}" for k in range(draw(st.integers(2, 5))))
            channels.append(response(Categories(names), loss, participation))
        else:
            made = Laplace(alphabet=Scale(0, draw(st.integers(1, 6))), epsilon=loss, participation=participation)
            channels.append(made.channel())
        tasks.append(draw(st.integers(1, 3)))
    everything, slots = range(sum(tasks)), draw(st.integers(2, 4))
    lists = [sorted(draw(st.sets(st.sampled_from(everything), min_size=1))) for _ in range(slots)]
    lists[0] = [*everything]
    built = build_questions(channels, tasks, lists, url=None)
    groups = built.campaign.groups
    assert groups is not None
    sizes = [channels[group].alphabet.size for group in groups.task_group]
    answers = [[draw(st.none() | st.integers(0, sizes[task] - 1)) for task in own] for own in lists]
    return built, answers


@settings(max_examples=40, deadline=None)
@given(campaigns(), st.binary(min_size=8, max_size=8))
def test_every_symbol_of_every_device_is_exported_to_its_question(drawn, seed):
    """Reports of real devices come back in the folder of their question, by task, worker and symbol, and no others.

    The ledger of each worker has the sum over the tables of the worker's own cells, and the campaign promises no less.
    """
    built, answers = drawn
    campaign, groups = built.campaign, built.campaign.groups
    assert groups is not None
    sent: dict[tuple[int, str, str], str] = {}
    accepted = []
    with temporary_folder(Path("/tmp")) as folder:
        files = built.write(folder / "files")
        for slot, own in enumerate(answers):
            stream = hashlib.shake_256(seed + bytes([slot])).digest
            with Device(built.link(slot).text, folder / f"home{slot}", files, stream) as device:
                device.open()
                for cell, answer in enumerate(own):
                    task = device.tasks[cell]
                    names = campaign.channel_of(slot, task).alphabet.names
                    device.answer(cell, "" if answer is None else names[answer])
                device.sample()
                body = bytes.fromhex(device.record["body"])
                lines = device.ledger_lines()
            exact = [table_ratio(campaign.channel_of(slot, task)) for task in device.tasks]
            brute = [{"cells": 1, "numerator": r.numerator, "denominator": r.denominator} for r in exact]
            assert abs(epsilon(lines) - epsilon(brute)) < 1e-40
            assert float(epsilon(lines)) <= campaign.worker_epsilon
            codes = decode_body(body, campaign, slot, device.tasks)
            for task, code in zip(device.tasks, codes, strict=True):
                outputs = campaign.channel_of(slot, task).outputs
                name = NULL if code < 0 else outputs[code]
                sent[groups.task_group[task], campaign.tasks[task].id, f"w{slot:04}"] = name
            accepted.append(read_accepted_report(campaign, slot, device.tasks, body))
        if any(len({slot for of, _, slot in sent if of == k}) < 2 for k in range(len(campaign.questions))):
            with pytest.raises(SettingsError, match="nothing is released"):
                write_questions(folder / "out", campaign, accepted)
            assert not (folder / "out").exists()
            return
        write_questions(folder / "out", campaign, accepted)
        found: dict[tuple[int, str, str], str] = {}
        for number, question in enumerate(campaign.by_question):
            evidence = read_evidence(folder / "out" / f"question-{number + 1}" / "reports.csv")
            assert evidence.channel is not None
            assert evidence.channel.certificate()["sha256"] == question.certificates[0]["sha256"]
            reports, assignment = evidence.reports, evidence.assignment
            assert assignment is not None
            asked = zip(assignment.task.tolist(), assignment.worker.tolist(), strict=True)
            found |= {(number, str(reports.tasks[t]), str(reports.workers[w])): NULL for t, w in asked}
            names = evidence.channel.report_alphabet.names
            for task, worker, value in zip(reports.task, reports.worker, reports.value, strict=True):
                found[number, str(reports.tasks[task]), str(reports.workers[worker])] = names[int(value)]

    assert sent == found


def table_ratio(channel: Channel) -> Fraction:
    """Return the largest ratio of two entries of a column, by loops."""
    columns = list(zip(*channel.rows, strict=True))
    return max(Fraction(high, low) for column in columns for high in column for low in column)


def test_the_statement_of_a_question_counts_the_answers_to_all(tmp_path):
    """With its campaign each question names its own epsilon beside those of all, and the sum over all for a worker."""
    exported = write_questions(tmp_path, BUILT.campaign, REPORTS)
    evidence = [read_evidence(one.folder / "reports.csv") for one in exported]
    stated = [statement_of_evidence(one, BUILT.campaign) for one in evidence]
    whole, before = joint_statement_of_questions(stated), campaign_statement(BUILT.campaign)
    losses = [channel.epsilon for channel in CHANNELS]

    assert losses == [one.of_question.epsilon for one in stated if one.of_question]
    assert ["1", "0.5", "0.5 to 1", "0.5 to 1"] == [one.question_epsilon_range for one in (*stated, whole, before)]
    for one in (*stated, whole, before):
        assert one.per_worker is not None
        assert (BUILT.campaign.worker_epsilon, 4) == (one.per_worker.epsilon, one.cells)
        assert (BUILT.campaign.guarantee, "randomized-response / laplace") == (one.per_answer, one.mechanism)
        assert any("asks 2 questions" in sentence for sentence in statement_sentences(one))
    mixed = "epsilon 0.5 to 1 per single answer, by question (0.5 for the question of these reports)."
    assert any(mixed in sentence for sentence in statement_sentences(stated[1]))


def test_a_question_without_its_campaign_states_nothing_of_a_whole_worker(tmp_path):
    """Reports, and a certificate, of one of several questions state an answer; what a worker loses is not known."""
    folder = write_questions(tmp_path, BUILT.campaign, REPORTS)[0].folder
    assert statement_of_source(read_stated_source(folder))[0].per_worker is not None
    (folder / "campaign.json").unlink()
    reports = statement_of_source(read_stated_source(folder))[0]
    certificates = [
        statement_of_source(read_stated_source(folder / "certificate.json", answers=answers))[0]
        for answers in (2, None)
    ]

    for one in (reports, *certificates):
        text = " ".join(statement_sentences(one))
        assert (None, 0, CHANNELS[0].epsilon) == (one.per_worker, one.cells, one.per_answer and one.per_answer.epsilon)
        assert OTHERS == statement_sentences(one)[1]
        assert "all answers of" not in text
        assert ("(at most 2) alone add up to epsilon 2." in text) == (one is not certificates[1])


def test_folders_of_questions_without_their_campaign_are_not_stated_together(tmp_path):
    """Without campaign.json in any folder the parent is refused, and is not called a collection without privacy."""
    for one in write_questions(tmp_path, BUILT.campaign, REPORTS):
        (one.folder / "campaign.json").unlink()

    with pytest.raises(SettingsError, match=r"needs the campaign\.json"):
        statement_of_source(read_stated_source(tmp_path))


def test_a_certificate_of_another_collection_is_stated_by_itself(tmp_path):
    """A crowd.json that names another certificate says nothing about this one."""
    first, second = (one.folder for one in write_questions(tmp_path, BUILT.campaign, REPORTS))
    (first / "certificate.json").write_bytes((second / "certificate.json").read_bytes())
    stated = statement_of_source(read_stated_source(first / "certificate.json", answers=2))[0]

    assert stated.per_worker is not None
    assert 2 * CHANNELS[1].epsilon == pytest.approx(stated.per_worker.epsilon)


@pytest.mark.parametrize(
    ("question", "found"),
    [([2, 2], "certificate"), ([3, 3], "name the question"), (None, "name the question")],
    ids=["another question", "a question that does not exist", "no question"],
)
def test_reports_of_another_question_are_not_stated(tmp_path, question, found):
    """A collection that names another question than its own, or none, has no statement with the campaign."""
    folder = write_questions(tmp_path, BUILT.campaign, REPORTS)[0].folder
    crowd = json.loads((folder / "crowd.json").read_text("utf-8"))
    assert [1, 2] == crowd["question"]
    crowd["question"] = question
    (folder / "crowd.json").write_text(json.dumps(crowd), "utf-8")

    with pytest.raises(ReportsError, match=found):
        statement_of_evidence(read_evidence(folder / "reports.csv"), BUILT.campaign)


def test_an_audit_of_a_worker_adds_up_the_questions(tmp_path):
    """The exact loss of a worker is the promised sum, and a smaller claim is refuted."""
    data = (BUILT.write(tmp_path) / "campaign.json").read_bytes()
    found = audit_file(data, "worker", source="campaign.json")

    assert (False, BUILT.campaign.worker_epsilon) == (found.refuted, found.exact)
    assert audit_file(data, "worker", source="campaign.json", epsilon=BUILT.campaign.worker_epsilon - 0.01).refuted
    assert not audit_file(data, source="campaign.json").refuted


def test_an_audit_of_a_question_says_that_the_others_add(tmp_path):
    """The loss of a worker under the certificate of one question is not called that of the worker."""
    folder = write_questions(tmp_path, BUILT.campaign, REPORTS)[0].folder
    words = ["audit", str(folder / "certificate.json"), "--neighbours", "worker", "--tasks", "2", "--json"]
    found = json.loads(CliRunner().invoke(main, words, catch_exceptions=False).stdout)

    assert ("worker and question", "worker, this question alone") == (found["unit"], found["neighbours"])
    assert found["because"].endswith("the answers to the other questions of the campaign add to it")


def test_the_statement_of_a_campaign_file_has_the_sum(tmp_path):
    """`statement` on a campaign with its parts states the sum over the questions, and refuses parts that ask more."""
    folder = BUILT.write(tmp_path)
    stated, facts = statement_of_source(read_stated_source(folder / "campaign.json"))
    assert stated.per_worker is not None
    assert (BUILT.campaign.worker_epsilon, 4) == (stated.per_worker.epsilon, stated.cells)
    assert ("Campaign", BUILT.campaign.name) in facts
    (folder / "parts" / "0000.json").write_bytes(b"{}")
    with pytest.raises(CrowdveilError):
        statement_of_source(read_stated_source(folder / "campaign.json"))

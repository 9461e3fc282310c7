"""Table of audits: every mechanism has a row, no bound exceeds a proof, and the page shows the table."""

import math
import shutil
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.audit import bounds, campaigns, commands, false_alarms, must_catch, readers, relays
from experiments.audit.__main__ import COMMANDS, FALSE_ALARMS, FALSE_CLAIMS, tables
from scipy.stats import binom

from crowdveil.cli import main
from crowdveil.mechanisms import MECHANISMS
from crowdveil.privacy.audit.black_box import FAILURE, Pair, audit_black_box
from crowdveil.randomness import Secure
from crowdveil.standalone import device as one_file
from crowdveil.standalone.checks import ClaimLog, check_certificate

PAGE = Path(__file__).parent.parent.parent / "docs" / "explanation" / "audits.md"


def test_every_mechanism_has_a_row():
    """The registry and the cases of the table name the same mechanisms; the saved rows are those of the cases."""
    cases = [(name, mechanism.name) for name, mechanism, *_ in bounds.mechanisms()]
    releases = [name for name, *_ in bounds.releases()]

    assert set(MECHANISMS) == {mechanism for _, mechanism in cases}
    assert [name for name, _ in cases] + releases + [bounds.COUNTS] == [row.name for row in bounds.read()]


def test_no_bound_exceeds_the_exact_loss():
    """Exactly the claims below the exact loss are refuted; a million draws of a cell of epsilon 1 bound it by 0.97."""
    rows = bounds.read()

    assert [] == [row.name for row in rows if row.bound > row.exact]
    assert [] == [row.name for row in rows if row.refuted != (row.claimed < row.exact * (1 - 1e-9))]
    assert all(row.bound >= 0.97 for row in rows if row.draws == bounds.CELL_DRAWS and row.exact > 0.99)


def test_the_page_shows_the_tables():
    """The generated part of the page is that of the saved rows."""
    assert PAGE.read_text("utf-8").endswith(tables())


def test_every_false_claim_is_refuted():
    """The saved rows are those of the false claims, and of the commands that show who answered."""
    rows = bounds.read(FALSE_CLAIMS)
    names = [f"`{claim.name}`: {claim.title}" for claim in must_catch.false_claims()]

    assert [*names, commands.LEAKING.name, commands.LINKING.name] == [row.name for row in rows]
    assert [] == [row.name for row in rows if not row.refuted]


@pytest.mark.parametrize("name", ["cells_dropped", "shuffler_keeps_order", "batch_of_one"])
def test_a_false_claim_is_refuted(name):
    """Composition of answered cells only, a shuffler that keeps the order, and a batch of one are refuted."""
    claim = next(one for one in must_catch.false_claims() if one.name == name)
    pair = Pair.of_function(claim.function, claim.first, claim.second)

    assert audit_black_box([pair], epsilon=claim.epsilon, delta=claim.delta, draws=claim.draws).refuted


def test_an_honest_shuffler_and_an_account_of_all_cells_stand():
    """The same batch in random order, and the same cells all counted, are not refuted with the same draws."""
    kept, dropped = (
        next(one for one in must_catch.false_claims() if one.name == name)
        for name in ("shuffler_keeps_order", "cells_dropped")
    )
    honest = must_catch.shuffled_reports(
        epsilon=must_catch.SHUFFLED_EPSILON, reports=must_catch.BATCH, keeps_order=False
    )
    shuffler = Pair.of_function(honest, 0, 1)
    cells = Pair.of_function(dropped.function, 0, 1)

    assert not audit_black_box([shuffler], epsilon=kept.epsilon, delta=kept.delta, draws=2000).refuted
    assert not audit_black_box([cells], epsilon=float(must_catch.CELLS), draws=2000).refuted


def test_every_command_keeps_its_claim():
    """The saved rows are those of the commands, campaigns and relays; no claim is refuted."""
    rows = bounds.read(COMMANDS)
    names = [case.name for case in commands.CASES] + [commands.MECHANISMS, commands.READERS]
    names += [*commands.CAMPAIGNS, *commands.RELAYS]

    assert names == [row.name for row in rows]
    assert [] == [row.name for row in rows if row.refuted or row.bound > row.claimed]


@pytest.mark.slow
def test_a_relay_of_whole_reports_links_the_cells_of_a_worker():
    """What a relay of single cells hides, exchanged symbols of two workers, one of whole reports shows."""
    linked, crossed = relays.LINKED, relays.CROSSED

    assert audit_black_box([Pair.of_function(relays.reports, linked, crossed)], epsilon=0.0, draws=100).refuted
    assert not audit_black_box([Pair.of_function(relays.cells, linked, crossed)], epsilon=0.0, draws=100).refuted


@pytest.mark.slow
@pytest.mark.parametrize("case", commands.CASES, ids=lambda case: case.name)
def test_every_command_runs_on_both_inputs(case):
    """Neither input is refused, and some release of each has rows: else an audit would compare nothing."""
    with commands.command_pairs(case) as pairs:
        releases = [draw(16 if "synthesize" in case.name else 1) for draw in (pairs[0].first, pairs[0].second)]

    assert [] == [output[FAILURE] for outputs in releases for output in outputs if FAILURE in output]
    assert all(any(map(has_rows, outputs)) for outputs in releases)


def has_rows(output):
    """Return whether a release has a synthetic claim; other commands write no such file."""
    return len(output.get("file synthetic.csv", b"\n\n").splitlines()) > 1


@pytest.mark.slow
@pytest.mark.parametrize("form", readers.FORMS)
def test_no_answer_decides_how_answers_are_read(form, tmp_path, monkeypatch):
    """From nobody, from one worker and from all, every form gives the same bytes where every input draws the same."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Secure, "words", lambda self, count: np.zeros(count, dtype=np.int64))
    for name, text in readers.LISTS.items():
        Path(name).write_text(text)
    options = "--mechanism randomized-response --epsilon 1 --labels no,yes --replace --out sent"
    given, path = readers.FORMS[form], Path(f"answers{readers.FORMS[form].suffix}")
    left = []
    for cells in readers.INPUTS.values():
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        given.write(path, cells)
        shutil.rmtree("sent", ignore_errors=True)
        words = readers.command(given, options, str(path)).split()[1:]
        result = CliRunner().invoke(main, words)
        left.append(
            (result.exit_code, result.output, {file.name: file.read_bytes() for file in Path("sent").iterdir()})
        )

    assert 0 == left[0][0]
    assert [left[0]] * len(left) == left


@pytest.mark.parametrize("form", readers.REFUSED)
def test_a_form_that_must_be_imported_is_refused_for_all_answers(form, tmp_path, monkeypatch):
    """The refusal of JSON, of answers to questions and of a wide table is one line whatever the answers are."""
    monkeypatch.chdir(tmp_path)
    for name, text in readers.LISTS.items():
        Path(name).write_text(text)
    given, options = readers.REFUSED[form], "--mechanism randomized-response --epsilon 1 --labels no,yes --out sent"
    path, said = f"answers{given.suffix}", set()
    for cells in readers.INPUTS.values():
        given.write(Path(path), cells)
        result = CliRunner().invoke(main, readers.command(given, options, path).split()[1:])
        said.add((result.exit_code, result.stdout, result.stderr))

    ((code, out, line),) = said
    assert (1, "") == (code, out)
    assert "answers" in line


def test_false_alarms_are_as_rare_as_stated():
    """No rate of the saved rows exceeds alpha by more than chance explains (1e-4 per row); every claim has a row."""
    rows = bounds.read(FALSE_ALARMS, false_alarms.AlarmRate)
    named = {name for name, mechanism, *_ in bounds.mechanisms() if math.isfinite(mechanism.guarantee.epsilon)}

    assert named | {case.name for case in false_alarms.single_commands()} == {row.name for row in rows}
    assert [] == [row.name for row in rows if row.alarms > binom.isf(1e-4, row.audits, false_alarms.ALPHA)]


def test_a_device_sends_the_same_requests_but_for_its_report():
    """A worker who answers nothing asks for the same documents in the same order, and sends as many bytes."""
    answered, nothing = (campaigns.requests(answers) for answers in ({"t0": "yes", "t1": "no", "t2": "no"}, {}))
    *asked, report = answered.values()
    *others, other = nothing.values()

    assert asked == others
    assert len(report) == len(other)


@pytest.mark.parametrize("level", range(3))
def test_a_device_with_levels_sends_its_level_and_symbols_and_nothing_else(level):
    """With other answers only the symbols of the report differ; the level is the byte before them."""
    answered, nothing = (campaigns.requests(answers, level) for answers in ({"t0": "yes", "t1": "no"}, {}))
    *asked, report = answered.values()
    *others, other = nothing.values()
    names = [one.rpartition(b" ") for one in (report, other)]

    assert asked == others
    assert names[0][0] == names[1][0]
    assert [level, level] == [body[0] for *_, body in names]
    assert [1 + campaigns.TASKS] * 2 == [len(body) for *_, body in names]


def constant(word: int) -> Callable[[int], bytes]:
    """Return a source that gives the same word again and again."""
    return lambda _: word.to_bytes(6, "little")


@pytest.mark.parametrize("level", range(3))
def test_a_device_loses_exactly_the_ratio_of_its_level(level):
    """Symbols change exactly at the borders of the rows, so that the largest ratio of a report is that of the level."""
    campaign, _ = campaigns.asked(None, levels=True)
    checked = check_certificate(campaign.certificates[level], ClaimLog())
    mass = []
    for answer in (0, 1, None):
        row = checked.rows[2 if answer is None else answer]
        borders = [0, *accumulate(row)]
        words = [(low, high - 1) for low, high in pairwise(borders)]
        for symbol, ends in enumerate(words):
            drawn = [one_file.draw([checked], [answer], 1, constant(word)) for word in ends]
            assert [bytes([symbol])] * 2 == drawn
        mass.append([Fraction(high - low, 2**48) for low, high in pairwise(borders)])
    worst = max(max(column) / min(column) for column in zip(*mass, strict=True))

    assert Fraction(*campaign.certificates[level]["ratio"]) == worst
    assert campaigns.LEVELS[level] - 1e-9 < math.log(worst) <= campaigns.LEVELS[level]


@pytest.mark.parametrize("box", [campaigns.service, campaigns.without_service])
def test_a_campaign_leaves_the_same_files(box):
    """With and without answers the names of the files are the same."""
    assert {*box({"t0": "yes"})} == {*box({})}

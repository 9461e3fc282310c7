"""The commands that carry a recommended plan out, word for word."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from crowdveil.storage.csv_line import csv_line

if TYPE_CHECKING:
    from crowdveil.labels import Alphabet
    from crowdveil.planning import Campaign, Row
    from crowdveil.workflow import Expectation

BLOCKS = "blocks of labels without order are no option of perturb: say QuantizedResponse(blocks=...) in Python"
BY_TASK = ("--tasks", "tasks.csv")


def next_commands(row: Row, expected: Expectation, prior: Path | None) -> list[str]:
    """Return the command lines of a campaign that is asked and inferred from as a candidate says.

    Args:
        row: the candidate.
        expected: what is publicly expected; without sigmas those of the campaign are meant.
        prior: file with the prior of the planned labels; None where inference learns it.
    """
    mechanism = _mechanism(row, expected, prior)
    if mechanism is None:
        return [BLOCKS]
    infer = ["--method", row.campaign.estimator.name, *([] if prior is None else ["--prior", str(prior)])]
    lines = _in_rounds(row, mechanism, infer) if row.campaign.rounds > 1 else _at_once(row.campaign, mechanism, infer)
    return [shlex.join(["crowdveil", *line]) for line in lines]


def _at_once(campaign: Campaign, mechanism: list[str], infer: list[str]) -> list[list[str]]:
    listed = [*BY_TASK, "--workers", "workers.csv"]
    lines, asked = list[list[str]](), list[str]()
    if campaign.assigned_per_task is not None:
        lines.append(["assign", *listed, "--per-task", str(campaign.assigned_per_task), "--out", "asked.csv"])
        asked = ["--assignment", "asked.csv"]
    lines.append(["perturb", "answers.csv", *listed, *asked, *mechanism, "--out", "sent"])
    return [*lines, ["infer", "sent/reports.csv", *infer, "--out", "found"]]


def _in_rounds(row: Row, mechanism: list[str], infer: list[str]) -> list[list[str]]:
    """Return all rounds: perturb, join to what was sent before, infer, and say where the next one cuts."""
    later = ["--mechanism", "quantized-response", *_promise(row)]
    lines = [
        _round(1, mechanism),
        ["infer", "round1/reports.csv", *infer, "--out", "found1"],
    ]
    so_far = "round1"
    for turn in range(2, row.campaign.rounds + 1):
        sent = [f"round{number}/reports.csv" for number in range(1, turn + 1)]
        cuts, found = f"cuts{turn}.csv", f"found{turn - 1}/truths.csv"
        lines += [
            ["next-cuts", found, "--certificate", f"{so_far}/certificate.json", "--out", cuts],
            _round(turn, [*later, "--channels", cuts]),
            ["join", *sent, "--out", f"joined{turn}"],
            ["infer", f"joined{turn}/reports.csv", *infer, "--out", f"found{turn}"],
        ]
        so_far = f"joined{turn}"
    return lines


def _round(turn: int, mechanism: list[str]) -> list[str]:
    workers = ["--workers", f"workers{turn}.csv"]
    return ["perturb", f"answers{turn}.csv", *BY_TASK, *workers, *mechanism, "--out", f"round{turn}"]


def _mechanism(row: Row, expected: Expectation, prior: Path | None) -> list[str] | None:
    """Return the options that make the candidate's mechanism; None where there are none."""
    from crowdveil.mechanisms import Designed, QuantizedResponse
    from crowdveil.planning.candidates import OTHER

    mechanism, chosen = row.mechanism, list[str]()
    if isinstance(mechanism, QuantizedResponse) and mechanism.cuts:
        chosen = ["--cuts", csv_line(mechanism.alphabet.names[cut] for cut in mechanism.cuts)]
    elif isinstance(mechanism, QuantizedResponse | Designed):
        if row.line.startswith(OTHER):
            return None
        chosen = _expected(row.campaign, expected, prior)
    return ["--mechanism", mechanism.name, *chosen, *_promise(row)]


def _expected(campaign: Campaign, expected: Expectation, prior: Path | None) -> list[str]:
    from crowdveil.planning import NumberCrowd

    words = ["--participation-rate", f"{campaign.rate:.12g}"]
    if prior is not None:
        words += ["--prior", str(prior)]
    if isinstance(campaign.crowd, NumberCrowd):
        return [*words, "--sigmas", ",".join(f"{sigma:.12g}" for sigma in campaign.crowd.sigmas)]
    return words if expected.ability is None else [*words, "--ability", f"{expected.ability:.12g}"]


def _promise(row: Row) -> list[str]:
    """Return epsilon, what an answer can be, and participation where it is public."""
    public = ["--participation", "public"] if row.campaign.participation == "public" else []
    return ["--epsilon", f"{row.epsilon:.12g}", *_alphabet(row.campaign.crowd.alphabet), *public]


def _alphabet(alphabet: Alphabet) -> list[str]:
    from crowdveil.labels import Scale

    if isinstance(alphabet, Scale):
        step = "" if alphabet.step == 1 else f":{alphabet.step:.12g}"
        return ["--scale", f"{alphabet.low:.12g}:{alphabet.high:.12g}{step}"]
    return ["--labels", csv_line(alphabet.names), *(["--ordered"] if alphabet.ordered else [])]

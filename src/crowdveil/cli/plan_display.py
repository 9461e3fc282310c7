"""A plan on the terminal: findings, the commands to run next, and a table of all candidates.

The commands that carry a recommended plan out, word for word.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdveil.channels.rounding import format_bound
from crowdveil.cli.display import printing
from crowdveil.data.ingest.csv_files import csv_row

if TYPE_CHECKING:
    from crowdveil.planning import Plan, Row

COSTS = {"per worker": 76, "bytes": 92}
"""Columns of a terminal from which on the table shows what a worker spends, and sends."""
GUESSED = {"default": "a default guess", "given": "given"}
"""Words for where an assumption about the crowd comes from."""
SHOWN_COMMANDS = 6
"""Commands of a campaign in rounds up to its second: later rounds repeat them."""


def plan_lines(made: Plan, data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of a plan; `data` is its JSON object."""
    from crowdveil.planning.summary import interval

    rows = [("assumed", sentence) for sentence in _assumed(data)]
    rows.append(("real crowds", data["real_sets"]))
    rows += [("plan", sentence) for sentence in data["verdict"]]
    if made.recommended is not None:
        rows += _commands(made.recommended, data)
    if data["merged_labels"] is not None:
        rows.append(("scale", _merged(data)))
    rows.append(("error", "share of wrong labels" if data["error_name"] == "error_rate" else "mean absolute error"))
    rows.append(("constant", f"{made.constant_error:.3g}, the best public one"))
    rows.append(("unprotected", f"{interval(made.unprotected)}, {made.unprotected_method}"))
    reported = f"{made.rows[0].cost.cells:,} cells, participation {data['participation']}"
    rows.append(("per worker", f"{reported}; the table adds up their epsilon, and bytes at one symbol per task"))
    return rows + [("written", path) for path in data["files"]]


@printing()
def print_candidates(made: Plan) -> None:
    """Print a table of all candidates, but of those that send the same only the first, and say which these are."""
    from rich.console import Console
    from rich.table import Table

    from crowdveil.planning.summary import expected_error, real_interval

    console = Console(highlight=False)
    costs = [name for name, columns in COSTS.items() if console.width >= columns]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    for name in ("epsilon", "mechanism"):
        table.add_column(name, overflow="fold")
    for name in ("error", "real crowds", *costs):
        table.add_column(name, justify="right")
    shown = None
    for row in made.rows:
        if row.same_as is not None:
            continue
        first, shown = format_bound(row.epsilon) if row.epsilon != shown else "", row.epsilon
        spent = format_bound(row.cost.worker_epsilon, 4)
        figures = expected_error(row.prediction, "<"), real_interval(row.prediction), spent, f"{row.cost.bytes:,}"
        table.add_row(first, row.line, *figures[: 2 + len(costs)])
    console.print()
    console.print(table)
    hidden = " and ".join(name for name in COSTS if name not in costs)
    narrow = [f"On a wider terminal, and with --json, there are columns: {hidden}."] if hidden else []
    console.print()
    for sentence in _same(made) + narrow:
        console.print(sentence)


def _same(made: Plan) -> list[str]:
    """Return which candidates send what others send, however they are read."""
    from crowdveil.planning.candidates import READ_IN_ORDER

    where: dict[tuple[str, str], list[str]] = {}
    for row in made.rows:
        if row.same_as is not None and not row.line.endswith(READ_IN_ORDER):
            where.setdefault((row.line, row.same_as), []).append(format_bound(row.epsilon))
    return [f"{line} sends the same as {other} at epsilon {', '.join(at)}." for (line, other), at in where.items()]


def _assumed(data: dict[str, Any]) -> list[str]:
    """Return what is taken for granted about workers, participation and truths, each with its source."""
    found = {one["name"]: (one["value"], GUESSED[one["source"]]) for one in data["assumptions"]}
    rate = found["participation_rate"]
    hidden = next(one["source"] for one in data["assumptions"] if one["name"] == "participation")
    if "ability" in found:
        low, high = data["worker_qualities"][0], data["worker_qualities"][-1]
        mean, source = found["ability"]
        workers = f"ability {mean:.3g} on average, {low:.2f} to {high:.2f} ({source})"
    else:
        sigmas, source = found["sigmas"]
        workers = f"normal errors of standard deviation {' and '.join(f'{one:.3g}' for one in sigmas)} ({source})"
    truths = "the prior of --prior" if data["prior_known_to_inference"] else "every label equally likely"
    return [
        f"{workers}; each worker answers {rate[0]:.3g} of the tasks ({rate[1]}), participation {data['participation']} "
        f"({hidden}); {truths} ({found['prior'][1]})."
    ]


def _merged(data: dict[str, Any]) -> str:
    """Return what a long scale was planned on."""
    labels = data["labels"]
    shown = f"{labels[0]}, {labels[1]}..{labels[-1]}"
    return (
        f"{data['merged_labels']:,} labels were merged to {len(labels)} to plan: {shown};"
        " answers and prior must be of that scale to have what is planned"
    )


def _commands(row: Row, data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines about the recommended mechanism: what is reported, and what to run."""
    found = data["recommended"]
    promise = f"epsilon {format_bound(found['epsilon_per_cell'])} per cell, participation {data['participation']}"
    later = "; later rounds: two blocks, by task" if row.campaign.rounds > 1 else ""
    commands, most = data["commands"], SHOWN_COMMANDS if row.campaign.rounds > 1 else len(data["commands"])
    rows = [("reports", f"{', '.join(found['reports'])}{later}; {promise}")]
    rows += [("next", line) for line in commands[:most]]
    if len(commands) > most:
        rows.append(("next", f"and so on, to round {row.campaign.rounds}: all commands are in plan.json and --json"))
    return rows


if TYPE_CHECKING:
    from crowdveil.channels.alphabet import Alphabet
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
        chosen = ["--cuts", csv_row(mechanism.alphabet.names[cut] for cut in mechanism.cuts)]
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
    from crowdveil.channels.alphabet import Scale

    if isinstance(alphabet, Scale):
        step = "" if alphabet.step == 1 else f":{alphabet.step:.12g}"
        return ["--scale", f"{alphabet.low:.12g}:{alphabet.high:.12g}{step}"]
    return ["--labels", csv_row(alphabet.names), *(["--ordered"] if alphabet.ordered else [])]

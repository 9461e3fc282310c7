"""Commands that write files made from private answers, as black boxes on neighbouring inputs, and whole campaigns.

Every command is crowdveil's own. Each case has the public lists and the files of answers; commands run in this process.
"""

import math
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from experiments.audit import campaigns, relays
from experiments.audit.bounds import Row, row_of

import crowdveil.workflow.synthesis
from crowdveil.cli import main
from crowdveil.cli.privacy.audit import run_in_process
from crowdveil.privacy.audit.black_box import Pair
from crowdveil.privacy.audit.claims import audit_pairs
from crowdveil.privacy.audit.command import CommandBox

EPSILON, DRAWS, RELAY_DRAWS = 0.5, 60, 4000
LABELS, NUMBERS, CLAIMS = "task,worker,label\n", "task,worker,value\n", "task,worker,value\n"
OTHERS = "".join(f"t1,w{number},{40 + number % 9}\n" for number in range(10, 160))
FILES = {
    "tasks.csv": "task\nt1\nt2\n",
    "workers.csv": "worker\nw1\nw2\n",
    "others.csv": "worker\nw3\nw4\n",
    "asked.csv": "task,worker\nt1,w1\nt2,w1\nt1,w2\n",
    "by-worker.csv": "worker,epsilon\nw1,0.5\nw2,0.4\n",
    "second.csv": NUMBERS + "t1,w3,2\nt2,w3,3\nt1,w4,4\n",
    "yes.csv": LABELS + "t1,w1,yes\nt2,w1,no\n",
    "no.csv": LABELS + "t1,w1,no\nt2,w1,no\n",
    "null.csv": LABELS + "t1,w1,NULL\nt2,w1,no\n",
    "one.csv": LABELS + "t1,w1,no\n",
    "none.csv": LABELS,
    "backwards.csv": LABELS + "t2,w1,no\nt1,w1,yes\n",
    "low.csv": NUMBERS + "t1,w1,0\nt2,w1,3\n",
    "high.csv": NUMBERS + "t1,w1,4\nt2,w1,3\n",
    "outside.csv": NUMBERS + "t1,w1,99.5\nt2,w1,3\n",
    "absent.csv": NUMBERS + "t2,w1,3\n",
    "near.csv": CLAIMS + "t1,w9,40\n" + OTHERS,
    "far.csv": CLAIMS + "t1,w9,90\n" + OTHERS,
}
LISTS = "--tasks tasks.csv --workers workers.csv"
SENT = f"crowdveil perturb {{input}} {LISTS} --epsilon 0.5"
BINARY, SCALE = "--labels no,yes --ordered", "--scale 0:4"
ANSWERS = (("yes.csv", "no.csv"), ("no.csv", "null.csv"), ("one.csv", "none.csv"), ("backwards.csv", "no.csv"))
VALUES = (("low.csv", "high.csv"), ("high.csv", "absent.csv"), ("outside.csv", "low.csv"))
MOVED = (("near.csv", "far.csv"),)
RELEASE = "crowdveil synthesize {input} --epsilon 0.5 --bounds 0:100 --records 3 --out {out}"
QUANTIZED = f"{SCALE} --mechanism quantized-response"


@dataclass(frozen=True, slots=True)
class Case:
    """Commands that run in turn, and the files that differ in one answer.

    Attributes:
        name: what they do.
        commands: command lines.
        pairs: neighbouring files.
    """

    name: str
    commands: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]


def _perturb(mechanism: str, options: str, pairs: tuple[tuple[str, str], ...]) -> Case:
    return Case(f"`perturb`, `{mechanism}`", (f"{SENT} {options} --mechanism {mechanism} --out {{out}}",), pairs)


RESPONSE = f"{SENT} {BINARY} --mechanism randomized-response"
CASES = (
    *(
        _perturb(name, BINARY, ANSWERS)
        for name in ("randomized-response", "memoised", "one-layer", "two-layer", "sun-two-layer")
    ),
    *(_perturb(name, SCALE, VALUES) for name in ("laplace", "quantized-response", "designed", "matrix-factorization")),
    Case(
        "`assign`, `perturb --budget --assignment`",
        (
            f"crowdveil assign {LISTS} --budget 1 --epsilon 0.5 --out {{out}}/asked.csv",
            f"crowdveil perturb {{input}} {BINARY} --mechanism randomized-response --budget 1 "
            "--assignment {out}/asked.csv --out {out}/sent",
        ),
        ANSWERS,
    ),
    Case("`perturb --channels`", (f"{RESPONSE} --channels by-worker.csv --out {{out}}",), ANSWERS),
    Case(
        "`perturb`, `encode`, `infer`, `report`",
        (
            f"{RESPONSE} --out {{out}}/sent",
            "crowdveil encode {out}/sent/reports.csv --out {out}/blocks",
            "crowdveil infer {out}/blocks --out {out}/found",
            "crowdveil report {out}/found --reports {out}/sent/reports.csv",
        ),
        ANSWERS[:2],
    ),
    Case(
        "two rounds: `next-thresholds`, `join`",
        (
            f"{SENT} {QUANTIZED} --out {{out}}/one",
            "crowdveil infer {out}/one/reports.csv --method gaussian --out {out}/found",
            "crowdveil next-thresholds {out}/found/truths.csv --certificate {out}/one/certificate.json "
            "--out {out}/cuts.csv",
            f"crowdveil perturb second.csv --tasks tasks.csv --workers others.csv --epsilon 0.5 {QUANTIZED} "
            "--channels {out}/cuts.csv --out {out}/two",
            "crowdveil join {out}/one/reports.csv {out}/two/reports.csv --out {out}/both",
        ),
        VALUES[:2],
    ),
    *(
        Case(f"`synthesize`, `{method}`", (f"{RELEASE} --method {method} {options}",), MOVED)
        for method, options in (
            ("histogram", ""),
            ("pooled-shape", ""),
            ("huai-corrected", "--k 80 --epsilon0 0.3 --records 1"),
        )
    ),
)
LEAKING = Case("worker list from answers", (f"{RESPONSE.replace(LISTS, '')} --lists-from-answers --out {{out}}",),
    (("one.csv", "none.csv"),))  # fmt: skip
"""Command that claims nothing: its lists show who answered."""
CAMPAIGNS = {
    "`answer`: requests of a device": campaigns.requests,
    "`serve`, `campaign close`, `export`, `report`": campaigns.service,
    "`answer --files`, `close`, `collect`, `infer`, `report`": campaigns.without_service,
}
RELAYS = {
    "`relay`, whole reports: another order": (relays.reports, relays.FORWARDS, relays.BACKWARDS),
    "`relay`, single cells: other workers": (relays.cells, relays.LINKED, relays.CROSSED),
}
ANSWERED: tuple[dict[str, str], dict[str, str]] = {"t0": "yes", "t1": "no"}, {"t1": "no"}
"""Answers to a campaign and the same without one."""


@contextmanager
def command_pairs(case: Case) -> Iterator[list[Pair]]:
    """Context in a temporary folder with the files of a case, and its pairs.

    The expected error of `synthesize` is left out: it takes fifty releases of simulated claims, from public numbers.
    """
    with TemporaryDirectory(prefix="crowdveil-audit-") as temporary, chdir(temporary):
        for name, text in FILES.items():
            Path(name).write_text(text, "utf-8")
        work = Path(temporary) / "work"
        work.mkdir()
        box = CommandBox(tuple(tuple(line.split()) for line in case.commands), work, run_in_process(main))
        with patch.object(crowdveil.workflow.synthesis, "release_errors", lambda *_, **__: None):
            yield [box.pair(Path(one), Path(two)) for one, two in case.pairs]


def every_box() -> Iterator[tuple[str, float, list[Pair]]]:
    """Yield name, claimed epsilon and pairs of every case; pairs are valid until the next is taken."""
    for case in CASES:
        with command_pairs(case) as pairs:
            yield case.name, EPSILON, pairs
    for title, function in CAMPAIGNS.items():
        yield title, campaigns.EPSILON, [Pair.of_function(function, *ANSWERED, name="an answer against none")]
    for title, (box, one, two) in RELAYS.items():
        yield title, relays.EPSILON, [Pair.of_function(box, one, two)]


def measured() -> Iterator[Row]:
    """Yield the audits of all commands, campaigns and relays; a call of a relay is fast."""
    for name, epsilon, pairs in every_box():
        draws = RELAY_DRAWS if name in RELAYS else DRAWS
        yield row_of(name, audit_pairs(name, pairs, epsilon=epsilon, draws=draws), draws, exact=epsilon)


def measured_leak() -> Row:
    """Return the audit of the command whose lists show who answered."""
    with command_pairs(LEAKING) as pairs:
        result = audit_pairs(LEAKING.name, pairs, epsilon=EPSILON, draws=DRAWS)
    return row_of(LEAKING.name, result, DRAWS, exact=math.inf)

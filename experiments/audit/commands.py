"""Commands that write files made from private answers, as black boxes on neighbouring inputs, and whole campaigns.

Every command is crowdveil's own. Each case has the public lists and the files of answers; commands run in this process.
"""

from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from experiments.audit import campaigns, readers, relays
from experiments.audit.bounds import Row, row_of

import crowdveil.storage.synthesis
from crowdveil.campaign.statement.claims import audit_claim_by_draws
from crowdveil.cli import main
from crowdveil.cli.privacy.audit import runner_of_own_commands
from crowdveil.privacy.audit.black_box import Pair
from crowdveil.privacy.audit.command import CommandBox, run_process
from crowdveil.synthesis.expected_error import ReleaseErrors

EPSILON, DRAWS, RELAY_DRAWS = 0.5, 60, 4000
LABELS, NUMBERS, CLAIMS = "task,worker,label\n", "task,worker,value\n", "task,worker,value\n"
OTHERS = "".join(f"t1,w{number},{40 + number % 9}\n" for number in range(10, 160))
FILES = {
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
    "all.csv": LABELS + "t1,w1,yes\nt2,w1,yes\nt1,w2,yes\nt2,w2,yes\n",
    "but-one.csv": LABELS + "t2,w1,yes\nt1,w2,yes\nt2,w2,yes\n",
    "all-values.csv": NUMBERS + "t1,w1,4\nt2,w1,4\nt1,w2,4\nt2,w2,4\n",
    "values-but-one.csv": NUMBERS + "t2,w1,4\nt1,w2,4\nt2,w2,4\n",
    "no-value.csv": NUMBERS,
    "near.csv": CLAIMS + "t1,w9,40\n" + OTHERS,
    "far.csv": CLAIMS + "t1,w9,90\n" + OTHERS,
    "link.sh": 'ln -s "$(wc -c < "$1")" "$2"\n',
} | readers.LISTS
LISTS = "--tasks tasks.csv --workers workers.csv"
SENT = f"crowdveil perturb {{input}} {LISTS} --epsilon 0.5"
BINARY, SCALE = "--labels no,yes --ordered", "--scale 0:4"
ANSWERS = (("yes.csv", "no.csv"), ("no.csv", "null.csv"), ("one.csv", "none.csv"), ("backwards.csv", "no.csv"))
VALUES = (("low.csv", "high.csv"), ("high.csv", "absent.csv"), ("outside.csv", "low.csv"))
EMPTY_AND_FULL = {
    BINARY: (("one.csv", "none.csv"), ("all.csv", "but-one.csv")),
    SCALE: (("absent.csv", "no-value.csv"), ("all-values.csv", "values-but-one.csv")),
}
MOVED = (("near.csv", "far.csv"),)
RELEASE = "crowdveil data synthesize {input} --epsilon 0.5 --bounds 0:100 --records 3 --out {out}"


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


OF_LABELS = (
    "randomized-response",
    "one-layer",
    "two-layer",
    "sun-two-layer",
    "subset-selection",
    "optimized-unary-encoding",
)
OF_NUMBERS = (
    "laplace",
    "piecewise",
    "ogpm",
    "square-wave",
    "staircase",
    "quantized-response",
    "designed",
    "matrix-factorization",
)
RESPONSE = f"{SENT} {BINARY} --mechanism randomized-response"
CASES = (
    *(_perturb(name, BINARY, ANSWERS) for name in OF_LABELS),
    *(_perturb(name, SCALE, VALUES) for name in OF_NUMBERS),
    Case(
        "`data assign`, `perturb --budget --assignment`",
        (
            f"crowdveil data assign {LISTS} --budget 1 --epsilon 0.5 --out {{out}}/asked.csv",
            f"crowdveil perturb {{input}} {BINARY} --mechanism randomized-response --budget 1 "
            "--assignment {out}/asked.csv --out {out}/sent",
        ),
        ANSWERS,
    ),
    Case("`perturb --channels`", (f"{RESPONSE} --channels by-worker.csv --out {{out}}",), ANSWERS),
    Case(
        "`perturb`, `data encode`, `infer`, `report`",
        (
            f"{RESPONSE} --out {{out}}/sent",
            "crowdveil data encode {out}/sent/reports.csv --out {out}/blocks",
            "crowdveil infer {out}/blocks --out {out}/found",
            "crowdveil report {out}/found --reports {out}/sent/reports.csv",
        ),
        ANSWERS[:2],
    ),
    *(
        Case(f"`data synthesize`, `{method}`", (f"{RELEASE} --method {method}",), MOVED)
        for method in ("histogram", "pooled-shape")
    ),
    Case(
        "`data synthesize`, participation protected",
        (f"{RELEASE} --method histogram --participation protected --expected-claims 2 --tasks tasks.csv",),
        (VALUES[0], *EMPTY_AND_FULL[SCALE]),
    ),
)
MECHANISMS = "`perturb`, every mechanism: no answer, all answers"
READERS = "`perturb`, every reader: no answer"
LEAKING = Case("worker list from answers", (f"{RESPONSE.replace(LISTS, '')} --lists-from-answers --out {{out}}",),
    (("one.csv", "none.csv"),))  # fmt: skip
"""Command that claims nothing: its lists show who answered."""
LINKING = Case("link with the answers in its text", ("sh link.sh {input} {out}",), (("one.csv", "none.csv"),))
"""Program whose files are all alike, but for the target of a symbolic link."""
CAMPAIGNS = {
    "`campaign answer`: requests of a device": (campaigns.requests, campaigns.EPSILON),
    "`campaign serve`, `campaign close`, `export`, `report`": (campaigns.service, campaigns.EPSILON),
    "`campaign answer --files`, `close`, `campaign collect`, `infer`, `report`": (
        campaigns.without_service,
        campaigns.EPSILON,
    ),
}
CAMPAIGNS |= {
    f"`campaign answer --level {level}`: requests of a device": (partial(campaigns.requests, level=level - 1), epsilon)
    for level, epsilon in enumerate(campaigns.LEVELS, start=1)
}
"""Box of each campaign, and the epsilon of a single answer."""
RELAYS = {
    "`campaign relay`, whole reports: another order": (relays.reports, relays.FORWARDS, relays.BACKWARDS),
    "`campaign relay`, single cells: other workers": (relays.cells, relays.LINKED, relays.CROSSED),
}
EVERY = {f"t{task}": "yes" for task in range(campaigns.TASKS)}
ANSWERED: tuple[tuple[dict[str, str], dict[str, str]], ...] = (
    ({"t0": "yes", "t1": "no"}, {"t1": "no"}),
    ({"t1": "no"}, {}),
    (EVERY, {"t0": "yes", "t1": "yes"}),
)
"""Answers to a campaign and the same without one."""


@contextmanager
def command_pairs(case: Case) -> Iterator[list[Pair]]:
    """Context in a temporary folder with the files of a case, and its pairs.

    The expected error of `data synthesize` is left out: it takes fifty releases of simulated claims.
    """
    with _folder() as work:
        box = _box(case.commands, work)
        with patch.object(
            crowdveil.storage.synthesis, "expected_errors_of_release", lambda *_, **__: ReleaseErrors(None, None)
        ):
            yield [box.pair_of_inputs(Path(one), Path(two)) for one, two in case.pairs]


@contextmanager
def mechanism_pairs() -> Iterator[list[Pair]]:
    """Context in a temporary folder with the pairs of no answer and of all answers, of every mechanism."""
    with _folder() as work:
        boxes = [
            (_box(case.commands, work), pairs)
            for case in CASES
            for options, pairs in EMPTY_AND_FULL.items()
            if case.name.startswith("`perturb`, `") and case.commands[0].startswith(f"{SENT} {options} --mechanism")
        ]
        yield [box.pair_of_inputs(Path(one), Path(two)) for box, pairs in boxes for one, two in pairs]


@contextmanager
def reader_pairs() -> Iterator[list[Pair]]:
    """Context in a temporary folder with no answer and with one in every form, and its pairs.

    A test compares the other inputs byte by byte.
    """
    options = f"{BINARY} --mechanism randomized-response --epsilon {EPSILON} --out {{out}}"
    with _folder() as work:
        pairs = list[Pair]()
        for number, form in enumerate(readers.FORMS.values()):
            folder = Path(f"form-{number}")
            folder.mkdir()
            files = {name: folder / f"{name}{form.suffix}" for name in readers.INPUTS}
            for name, path in files.items():
                form.write(path, readers.INPUTS[name])
            box = _box((readers.command(form, options),), work)
            pairs.append(box.pair_of_inputs(files["nobody"], files["one"]))
        yield pairs


@contextmanager
def _folder() -> Iterator[Path]:
    """Context in a temporary folder with the lists and answers; yield the folder of the runs."""
    with TemporaryDirectory(prefix="crowdveil-audit-") as temporary, chdir(temporary):
        for name, text in FILES.items():
            Path(name).write_text(text, "utf-8")
        work = Path(temporary) / "work"
        work.mkdir()
        yield work


def _box(commands: Sequence[str], work: Path) -> CommandBox:
    own = runner_of_own_commands(main)
    lines = tuple(tuple(line.split()) for line in commands)
    return CommandBox(lines, work, lambda words: (own if words[0] == "crowdveil" else run_process)(words))


def every_box() -> Iterator[tuple[str, float, list[Pair]]]:
    """Yield name, claimed epsilon and pairs of every case; pairs are valid until the next is taken."""
    for case in CASES:
        with command_pairs(case) as pairs:
            yield case.name, EPSILON, pairs
    for name, context in ((MECHANISMS, mechanism_pairs), (READERS, reader_pairs)):
        with context() as pairs:
            yield name, EPSILON, pairs
    for title, (function, epsilon) in CAMPAIGNS.items():
        inputs = [Pair.of_function(function, *pair, name="an answer against none") for pair in ANSWERED]
        yield title, epsilon, inputs
    for title, (box, one, two) in RELAYS.items():
        yield title, relays.EPSILON, [Pair.of_function(box, one, two)]


def measured() -> Iterator[Row]:
    """Yield the audits of all commands, campaigns and relays; a call of a relay is fast."""
    for name, epsilon, pairs in every_box():
        draws = RELAY_DRAWS if name in RELAYS else DRAWS
        yield row_of(name, audit_claim_by_draws(name, pairs, epsilon=epsilon, draws=draws), draws, exact=epsilon)


def measured_leaks() -> Iterator[Row]:
    """Yield the audits of the commands that show who answered: by a list, by a link."""
    for case in (LEAKING, LINKING):
        with command_pairs(case) as pairs:
            result = audit_claim_by_draws(case.name, pairs, epsilon=EPSILON, draws=DRAWS)
        yield row_of(case.name, result, DRAWS)

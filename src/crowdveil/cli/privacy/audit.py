"""`crowdveil audit`: lower bounds on the privacy loss of a mechanism, certificate, campaign, function or command."""

from __future__ import annotations

import io
import shlex
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.channels.rounding import format_bound, format_delta, format_lower
from crowdveil.cli.display import print_result
from crowdveil.cli.options import (
    COUNT,
    DELTA,
    EPSILON,
    MechanismOptions,
    alphabet_of,
    alphabet_options,
    expectation_options,
    mechanism_settings,
    option_group,
    participation_option,
    setting_options,
    stated_options,
)
from crowdveil.cli.privacy.claim_file import campaign_or_certificate_file
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import number_of
from crowdveil.registry import MECHANISM_NAMES

if TYPE_CHECKING:
    from crowdveil.campaign.statement.claims import Audit
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.channels.guarantee import Participation
    from crowdveil.privacy.audit.black_box import Progress
    from crowdveil.privacy.audit.exact_loss import Neighbours

PROGRAM = "crowdveil"
INTERRUPTED = 130
"""Exit code of a command after Ctrl-C."""
OWN_OPTIONS = ("labels", "scale", "ordered", "null_value", "low", "high", "most_answers", "dimensions", "ridge", "cuts",
    "prior", "participation_rate", "ability", "sigmas", "rounds")  # fmt: skip
"""Options of mechanisms alone."""
REFUTED = 1
"""Exit code of a refuted claim."""
EXAMPLE = """crowdveil audit two-layer --epsilon 1 --labels no,yes --tasks 50
crowdveil audit --command "crowdveil perturb {input} --out {out}
          --mechanism randomized-response --epsilon 1 ..."
          --input a.csv --neighbour b.csv --epsilon 1"""


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """Options of `audit`, by argument; None or empty where none is given.

    Attributes:
        target: mechanism or file; None with commands.
        epsilon, delta: claim; of a mechanism the requested epsilon.
        draws: of each input.
        neighbours: what differs between inputs.
        tasks, rounds: cells of a worker, and campaigns.
        command_lines, inputs, others: commands, with pairs of inputs and their neighbours.
        participation, own, alphabet: of a mechanism.
    """

    target: str | None
    epsilon: float | None
    delta: float
    draws: int | None
    neighbours: Neighbours | None
    tasks: int | None
    rounds: int | None
    command_lines: tuple[str, ...]
    inputs: tuple[str, ...]
    others: tuple[str, ...]
    participation: Participation
    own: MechanismOptions
    alphabet: Alphabet | None


@click.command(
    cls=Verb,
    values={"own": MechanismOptions, "alphabet": alphabet_of, "asked": AuditOptions},
    example=EXAMPLE,
    main_options=("epsilon", "labels", "neighbours", "command_lines", "inputs", "others"),
    short_help="Test a program's privacy claim.",
)
@click.argument("target", required=False)
@click.option("--epsilon", type=EPSILON, help="For a mechanism, the requested epsilon; else the claimed one.")
@click.option("--delta", type=DELTA, default=0.0, help="Claimed delta of a command.")
@click.option("--draws", type=COUNT, help="Draws of each input. [default: 100000, 10000 or 200, depending on the cost]")
@click.option(
    "--neighbours",
    type=click.Choice(["value", "participation", "worker"]),
    help=(
        "What differs between inputs: one answer, one answer against NULL, or all answers. [default: one "
        "answer, NULL if protected]"
    ),
)
@click.option("--tasks", type=COUNT, help="Mechanisms, certificates: cells of a worker. [default: 1]")
@click.option("--rounds", type=COUNT, help="Mechanisms: campaigns with the same answers.")
@click.option(
    "--command",
    "command_lines",
    multiple=True,
    metavar="TEXT",
    help="Command to audit, with {input} and perhaps {out}.",
)
@click.option("--input", "inputs", multiple=True, metavar="X", help="First input of the command.")
@click.option("--neighbour", "others", multiple=True, metavar="Y", help="Second input, a neighbour of the first.")
@option_group(participation_option, heading="Mechanism")
@setting_options
@expectation_options
@alphabet_options
def audit(asked: AuditOptions) -> None:
    """Test a privacy claim: try to refute it.

    TARGET is a mechanism, a certificate.json or a campaign.json. --command audits whole commands instead: exit codes,
    text, and bytes, modes and links of files. A finite channel is compared exactly. Of anything else, many outputs are
    drawn; they give a lower bound on epsilon of a cell or worker.

    Exit codes: 0 not refuted; 1 refuted, or invalid file; 2 usage; 3 not run.

    \f
    The draws of each pair of inputs are split in half. Events are searched on one half; the bound is computed on the
    other half by Clopper-Pearson limits, with alpha divided by the number of pairs in both directions. So a true claim
    is refuted with probability at most alpha. A bound below the claim proves nothing.

    The claim of a mechanism is that of its source, or else its exact epsilon. The claim of a file is the epsilon that
    it states. The claim of a command is --epsilon (and --delta), for any change between --input and --neighbour. Repeat
    both options for several pairs. The exit code is an output, too. Repeat --command for several commands, which run in
    turn on the same paths.
    """
    if (asked.target is None) == (not asked.command_lines):
        raise click.UsageError("Give a TARGET or --command.")
    with progress_bar("drawing") as bar:
        progress = bar
        if asked.target is None:
            result = _audit_commands(asked, progress)
        elif asked.target in MECHANISM_NAMES:
            result = _audit_mechanism(asked.target, asked, progress)
        else:
            result = _audit_file(Path(asked.target), asked)
    data = _data_to_print_as_json(result)
    print_result(data, _rows_to_print(result))
    if result.refuted:
        raise click.exceptions.Exit(REFUTED)


def _audit_mechanism(name: str, asked: AuditOptions, progress: Progress | None) -> Audit:
    if asked.epsilon is None and asked.own.high is None:
        raise click.UsageError("Missing option '--epsilon'.")
    requested = mechanism_settings(
        mechanism=name, epsilon=asked.epsilon, budget=None, participation=asked.participation, own=asked.own
    )
    if asked.alphabet is None:
        raise click.UsageError("Give the possible answers: --labels or --scale.")
    _refuse_options("inputs", "others", "delta")
    from crowdveil.campaign.statement.claims import audit_mechanism
    from crowdveil.design.mechanism_from_settings import build_mechanism

    tasks = asked.tasks or 1
    mechanism = build_mechanism(requested, asked.alphabet, tasks=tasks)
    rounds, draws = asked.rounds or 1, asked.draws
    return audit_mechanism(mechanism, asked.neighbours, tasks=tasks, rounds=rounds, draws=draws, progress=progress)


def _audit_file(path: Path, asked: AuditOptions) -> Audit:
    _refuse_options("inputs", "others", "delta", "draws", *OWN_OPTIONS)
    file = campaign_or_certificate_file(path)
    if not file.is_file():
        known = ", ".join(MECHANISM_NAMES)
        raise click.BadParameter(f"{str(path)!r} is neither a file nor a mechanism ({known}).")
    from crowdveil.campaign.statement.claims import audit_file
    from crowdveil.storage.evidence import is_certificate_of_question

    apart, tasks = is_certificate_of_question(file), asked.tasks or 1
    return audit_file(
        file.read_bytes(), asked.neighbours, source=str(file), epsilon=asked.epsilon, tasks=tasks, apart=apart
    )


def _audit_commands(asked: AuditOptions, progress: Progress | None) -> Audit:
    if asked.epsilon is None:
        raise click.UsageError("Missing option '--epsilon', the claim.")
    if not asked.inputs or len(asked.inputs) != len(asked.others):
        raise click.UsageError("Give --input and --neighbour the same number of times.")
    _refuse_options("neighbours", "tasks", *OWN_OPTIONS)
    from crowdveil.campaign.statement.claims import COMMAND_DRAWS, audit_claim_by_draws
    from crowdveil.files.filesystem import temporary_folder
    from crowdveil.privacy.audit.command import CommandBox, run_process

    own = runner_of_own_commands(click.get_current_context().find_root().command)

    def run(words: Sequence[str]) -> tuple[int, bytes, bytes]:
        return (own if words[:1] == [PROGRAM] else run_process)(words)

    with temporary_folder(Path(tempfile.gettempdir())) as temporary:
        folder = temporary / "run"
        folder.mkdir()
        box = CommandBox(tuple(tuple(shlex.split(line)) for line in asked.command_lines), folder, run)
        pairs = [box.pair_of_inputs(Path(one), Path(two)) for one, two in zip(asked.inputs, asked.others, strict=True)]
        return audit_claim_by_draws(
            " && ".join(asked.command_lines),
            pairs,
            epsilon=asked.epsilon,
            delta=asked.delta,
            draws=asked.draws or COMMAND_DRAWS,
            progress=progress,
        )


def runner_of_own_commands(group: click.Command) -> Callable[[Sequence[str]], tuple[int, bytes, bytes]]:
    """Return a runner of crowdveil's own commands, which need not start Python for every draw."""

    def run(words: Sequence[str]) -> tuple[int, bytes, bytes]:
        printed, errors, code = io.BytesIO(), io.BytesIO(), 0
        streams = [io.TextIOWrapper(stream, "utf-8", write_through=True) for stream in (printed, errors)]
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            try:
                group.main(list(words[1:]), prog_name=words[0], standalone_mode=True)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except Exception as error:  # a crash is an output, as that of a process would be
                code = 1
                streams[1].write(repr(error))
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code, printed.getvalue(), errors.getvalue()

    return run


def _refuse_options(*names: str) -> None:
    """Refuse options that this kind of target does not have."""
    flags = {"inputs": "--input", "others": "--neighbour", "most_answers": "--answers"}
    for name in names:
        if name in stated_options():
            raise click.UsageError(f"{flags.get(name, '--' + name.replace('_', '-'))} is not an option of this target.")


def _data_to_print_as_json(result: Audit) -> dict[str, Any]:
    found = None if result.draws is None else result.draws.finding
    drawn = None
    if result.draws is not None and found is not None:
        counts = found.counts
        drawn = {
            "epsilon_bound": found.epsilon,
            "delta_bound": found.delta,
            "pair": found.pair,
            "event": found.event,
            "counts": [counts.first, counts.second],
            "counted_draws": [counts.first_draws, counts.second_draws],
            "draws": result.draws.draws,
            "pairs": result.draws.pairs,
            "alpha": result.draws.alpha,
        }
    return {
        "target": result.target,
        "neighbours": result.neighbours,
        "unit": result.unit,
        "claimed_epsilon": result.claimed_epsilon,
        "claimed_delta": result.claimed_delta,
        "exact": result.exact,
        "because": result.worst,
        "drawn": drawn,
        "refuted": result.refuted,
        "verdict": result.verdict,
    }


def _rows_to_print(result: Audit) -> list[tuple[str, str]]:
    unit = "" if result.unit is None else f" per {result.unit}"
    delta = f", delta {format_delta(result.claimed_delta)}" if result.claimed_delta else ""
    rows = [
        ("target", result.target),
        ("neighbours", result.neighbours),
        ("claim", f"epsilon {format_bound(result.claimed_epsilon)}{delta}{unit}"),
    ]
    if result.exact is not None:
        because = f" ({result.worst})" if result.worst else ""
        rows.append(("exact", f"epsilon {format_bound(result.exact)}{because}"))
    if result.draws is not None:
        rows += _drawn_bound_rows(result)
    return [*rows, ("verdict", result.verdict)]


def _drawn_bound_rows(result: Audit) -> list[tuple[str, str]]:
    drawn = result.draws
    assert drawn is not None
    found, counts = drawn.finding, drawn.finding.counts
    bound = f"epsilon at least {format_lower(found.epsilon, 4)} at delta {format_lower(drawn.claimed_delta)}"
    if drawn.claimed_delta:
        bound += f"; delta at least {format_lower(found.delta, 4)} at epsilon {format_lower(drawn.claimed_epsilon)}"
    rows = [("bound", f"{bound} (confidence {format_lower(1 - drawn.alpha)})")]
    if found.event:
        shares = f"{counts.first:,} of {counts.first_draws:,} against {counts.second:,} of {counts.second_draws:,}"
        rows += [("event", f"{found.event}: {shares}"), ("inputs", found.pair)]
    return [*rows, ("draws", f"{drawn.draws:,} of each input, {number_of(drawn.pairs, 'pair')}")]

"""Command line: one command per verb, each in its own file: parse, one library call, print.

Numerical modules are imported inside commands, so that `--help` is fast. A new verb is one file and one entry of
`SECTIONS`; one whose help is longer than a screen is a `Verb`.
"""

import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import click

from crowdveil.cli.campaign import campaign
from crowdveil.cli.data import data
from crowdveil.cli.data.import_answers import import_answers
from crowdveil.cli.demo import demo
from crowdveil.cli.display import error_document, error_line, has_json_flag, json_text, printable
from crowdveil.cli.infer import infer
from crowdveil.cli.named_options import option_naming, running_command
from crowdveil.cli.perturb import perturb
from crowdveil.cli.plan import plan
from crowdveil.cli.privacy.account import account
from crowdveil.cli.privacy.audit import audit
from crowdveil.cli.privacy.statement import statement
from crowdveil.cli.privacy.verify import verify
from crowdveil.cli.results.agreement import agreement
from crowdveil.cli.results.conclude import conclude
from crowdveil.cli.results.next_answers import next_answers
from crowdveil.cli.results.rank import rank
from crowdveil.cli.results.report import report
from crowdveil.cli.results.review_workers import review
from crowdveil.cli.results.share import share
from crowdveil.cli.temporary_errors import is_temporary
from crowdveil.cli.verb import VerbGroup
from crowdveil.em.kernels.jit import MIN_BYTES_TO_START, free_address_space
from crowdveil.errors import (
    CampaignError,
    CertificateError,
    ClaimError,
    CrowdveilError,
    MemoryShortageError,
    ReportsError,
    memory_shortage_error,
)
from crowdveil.hints import arguments_named_by

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Infer truths": (infer, share, rank, report, import_answers),
    "Check quality and choose the next answers": (agreement, review, conclude, next_answers),
    "Ask a crowd": (plan, perturb, campaign),
    "Privacy": (account, statement, verify, audit),
    "Data and experiments": (data, demo),
}
"""Verbs by the heading of help, in the order of help."""
NOT_CHECKED = 3
"""Exit code of a check that could not run; other errors end with 1."""
CHECKS = (audit, verify, statement)
"""Commands that check claims: 1 means that the check found the file or the claim false, and nothing else."""
FOUND_FALSE = (ClaimError, CertificateError, CampaignError, ReportsError)
"""Errors of a check that has found a false claim, an invalid file, or reports that do not belong to it."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as in a shell."""
TRY_AGAIN = 75
"""Exit code of a failure that may be gone later (EX_TEMPFAIL of sysexits.h): network, lock, or full disk."""
ARGUMENTS_KEY = "crowdveil.arguments"
"""Key of the arguments in the click context."""
HELP_SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}
END_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if name in dir(signal))
"""Signals after which the process removes its temporary files; not every system has both."""


class WithoutPandas:
    """Hides pandas from pyarrow, whose first array would import it: that is slower than a fit, and not needed."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Refuse to import pandas; other modules are left to other finders."""
        if name == "pandas":
            raise ModuleNotFoundError("the command line runs without pandas", name=name)


class OpenCheck(click.ClickException):
    """Error of a check that leaves its question open."""

    exit_code = NOT_CHECKED


class TemporaryFailure(click.ClickException):
    """Error whose cause may be gone at another time."""

    exit_code = TRY_AGAIN


class Verbs(VerbGroup):
    """Group of commands; an error is one line on stderr, and with --json one object on stdout."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments, from which errors name the command."""
        ctx.meta[ARGUMENTS_KEY] = tuple(args)
        with self._failures(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; errors of crowdveil and the file system become one line and an exit code."""
        try:
            with self._failures(ctx):
                free = free_address_space()
                if free is not None and free < MIN_BYTES_TO_START:
                    raise MemoryShortageError(
                        f"{free:,} bytes of address space are left, {MIN_BYTES_TO_START:,} are needed"
                    )
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None

    @contextmanager
    def _failures(self, ctx: click.Context) -> Iterator[None]:
        """Print errors as JSON if requested; click prints the line on stderr."""
        words = ctx.meta[ARGUMENTS_KEY]
        naming = option_naming(running_command(self, words)[1])
        checks = self.commands.get(next((word for word in words if not word.startswith("-")), "")) in CHECKS
        try:
            with arguments_named_by(naming):
                yield
        except BrokenPipeError:
            if checks:
                raise click.exceptions.Exit(NOT_CHECKED) from None
            raise  # a closed pipe: click ends without a message
        except click.ClickException as error:
            self._show_json(error, words)
            raise
        except click.exceptions.Exit:
            raise
        except Exception as error:
            refusal = error if isinstance(error, CrowdveilError) else memory_shortage_error(error) or error
            if not isinstance(refusal, CrowdveilError | OSError):
                if not checks:
                    raise
                traceback.print_exc()
                raise click.exceptions.Exit(NOT_CHECKED) from error
            self._show_json(refusal, words)
            # A file that cannot be read says nothing of its claim.
            is_open = checks and (not isinstance(refusal, FOUND_FALSE) or isinstance(refusal.__cause__, OSError))
            later = TemporaryFailure if not checks and is_temporary(refusal) else click.ClickException
            raise (OpenCheck if is_open else later)(printable(error_line(refusal))) from error

    def _show_json(self, error: Exception, words: Sequence[str]) -> None:
        if has_json_flag(words):
            with suppress(OSError):  # stdout cannot be written; stderr has the error
                click.echo(json_text(error_document(error, self, words)))


@click.group(name="crowdveil", cls=Verbs, sections=SECTIONS, context_settings=HELP_SETTINGS)
@click.version_option(package_name="crowdveil", message="%(prog)s %(version)s")
def main() -> None:
    """Truth inference from crowds under local differential privacy.

    \b
    Find the consensus in a file of labels:
      crowdveil infer labels.csv --out found
    Randomize answers as devices would, state the privacy loss, infer the truths:
      crowdveil perturb answers.csv --mechanism randomized-response
                        --epsilon 3 --labels no,yes --tasks tasks.csv
                        --workers workers.csv --out sent
      crowdveil account --mechanism randomized-response --epsilon 3
                        --labels no,yes --tasks 100
      crowdveil infer sent/reports.csv --out found

    Epsilon is the privacy loss of one worker's answer to one task (a cell). By default it also hides whether someone
    answered (participation protected). Exit codes: 0 done; 1 the request cannot be met, or a claim is refuted; 2 wrong
    usage; 3 a check (verify, audit, statement) could not run; 75 try again: network, lock, or full disk; 130
    interrupted. With --json, every command prints one JSON object, also for an error.
    """


def start() -> None:
    """Run the command line as a process of its own; programs call `main` instead."""
    # Matrices are small: threads of the linear algebra library wait longer for each other than they compute.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.meta_path.insert(0, WithoutPandas())
    for code in END_SIGNALS:
        # A signal that was ignored at the start, as under nohup, stays ignored.
        if signal.getsignal(code) == signal.SIG_DFL:
            signal.signal(code, _end)
    try:
        main(prog_name="crowdveil")
    finally:
        _drop_unprinted()


def _drop_unprinted() -> None:
    """Discard output that stdout refused; Python would write it again at exit and fail."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(code: int, _: FrameType | None) -> None:
    """Exit in good order, with temporary folders removed; further signals are ignored.

    Raises:
        SystemExit: with the exit code of a shell for the signal.
    """
    for other in END_SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(128 + code)

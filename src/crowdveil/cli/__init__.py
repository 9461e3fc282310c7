"""The command line: one thin command per verb (load, one call, print), each in a file of its own.

Heavy modules are imported inside commands, so that `--help` answers at once. A new verb is one file and one entry of
`COMMANDS`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

from crowdveil.cli.account import account
from crowdveil.cli.assign import assign
from crowdveil.cli.datasets import datasets
from crowdveil.cli.demo import demo
from crowdveil.cli.display import printable
from crowdveil.cli.encode import encode
from crowdveil.cli.infer import infer
from crowdveil.cli.json_output import as_text, failure, json_wanted
from crowdveil.cli.perturb import perturb
from crowdveil.cli.plan import plan
from crowdveil.cli.rounds import join, next_thresholds
from crowdveil.cli.synthesize import synthesize
from crowdveil.errors import CrowdveilError, MemoryShortageError, memory_shortage
from crowdveil.jit import MIN_BYTES_TO_START, free_address_space

COMMANDS: tuple[click.Command, ...] = (
    demo,
    plan,
    assign,
    perturb,
    encode,
    infer,
    join,
    next_thresholds,
    account,
    synthesize,
    datasets,
)
"""In the order in which help lists them."""
INTERRUPTED = 130
"""Exit code after Ctrl-C: what a shell has for signal 2."""
WORDS = "crowdveil.words"
"""Key of the words of the command line in a context."""


class Verbs(click.Group):
    """A group whose commands fail in one line, and with --json in one object, when the request cannot be met."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which they are used, not by letter."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep all words of the command line for errors, which name the command."""
        ctx.meta[WORDS] = tuple(args)
        with self._failures(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what crowdveil or the file system refuses becomes one line and exit code 1."""
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
        """Print a failure as JSON where that was asked for, and leave its line on stderr to click."""
        try:
            yield
        except BrokenPipeError:
            raise  # the reader of a pipe has left: click ends quietly
        except click.ClickException as error:
            self._show_json(error, ctx.meta[WORDS])
            raise
        except Exception as error:
            refusal = error if isinstance(error, CrowdveilError) else memory_shortage(error) or error
            if not isinstance(refusal, CrowdveilError | OSError):
                raise
            self._show_json(refusal, ctx.meta[WORDS])
            raise click.ClickException(printable(" ".join(str(refusal).split()))) from error

    def _show_json(self, error: Exception, words: Sequence[str]) -> None:
        if json_wanted(words):
            with suppress(OSError):  # where stdout cannot be written, stderr says what happened
                click.echo(as_text(failure(error, self, words)))


@click.group(cls=Verbs, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="crowdveil", message="%(prog)s %(version)s")
def main() -> None:
    """Truth from crowds, without seeing anyone's answers.

    Each worker's answers are randomized on the worker's own device, so that only reports leave it. From the reports,
    and the channel they went through, the truth of every task and the quality of every worker are inferred.

    \b
    What devices would have sent for the answers in a file:
      crowdveil perturb answers.csv --mechanism randomized-response
                        --epsilon 3 --out sent
    What the reports say:
      crowdveil infer sent/reports.csv --out found
    What an epsilon adds up to:
      crowdveil account --mechanism randomized-response --epsilon 3
                        --labels no,yes --tasks 100

    An epsilon is the privacy loss, in nats, of one cell: one worker's answer to one task. Where participation is
    protected, "no answer" is hidden like an answer; where it is public, everyone sees who answered what.

    Exit codes: 0 done; 1 the request cannot be met (the message names the rule, the value and the way out); 2 wrong
    usage; 130 interrupted (Ctrl-C); 143 terminated. With --json every command prints one JSON object on stdout, errors
    too.
    """

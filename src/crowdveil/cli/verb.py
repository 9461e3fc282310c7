"""Commands and groups of commands whose help fits on a screen.

The help of a command has two lengths: --help has an example and the main options, --help-all every option by heading.
A group lists its commands by heading, in the order of use.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
from click.core import augment_usage_errors

OTHER = "Options"
"""Heading of the options without one."""
HEADING = "crowdveil_heading"
"""Attribute of an option: the heading under which --help-all lists it."""
_JSON, _JSON_LOG = "crowdveil.json", "crowdveil.json-log"


def wants_json() -> bool:
    """Return whether the running command prints JSON."""
    return bool(click.get_current_context().meta[_JSON])


def wants_json_log() -> bool:
    """Return whether the running command, if there is one, tells its progress as JSON."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_JSON_LOG))


class Verb(click.Command):
    """Command whose --help fits on one screen, with the option --json.

    The docstring of the function is the text; paragraphs below a form feed are shown by --help-all only.

    Args:
        settings: keyword arguments of `click.Command`.
        example: command line that is shown first.
        details: paragraph of --help-all that comes before those of the docstring.
        main_options: names of the options that --help shows, besides the required ones.
        values: function of each argument of the command that follows from options, by the argument's name, in order;
            its parameters are the options, or earlier arguments, which do not reach the command.
    """

    def __init__(
        self,
        *,
        example: str,
        details: str = "",
        main_options: Sequence[str] = (),
        values: Mapping[str, Callable[..., Any]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.help, _, more = (part.strip() for part in inspect.cleandoc(self.help or "").partition("\f"))
        self.full_text = "\n\n".join(filter(None, (self.help, details, more)))
        self.params += [
            _kept_flag("--json", _JSON, "Print one JSON object instead of the table; nothing else on stdout."),
            _kept_flag("--log-json", _JSON_LOG, "Tell the progress on stderr as JSON: one object a line."),
        ]
        self.example, self.main_options = example, frozenset(main_options)
        self.values = values or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options, and replace those of `values` by the values that follow from them."""
        rest = super().parse_args(ctx, args)
        with augment_usage_errors(ctx):
            for name, value_of in ({} if ctx.resilient_parsing else self.values).items():
                own = inspect.signature(value_of).parameters
                used = {one: ctx.params[one] for one in own if one in ctx.params}
                ctx.params = {key: value for key, value in ctx.params.items() if key not in used}
                ctx.params[name] = value_of(**used)
        return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, --help-all last."""
        return [*super().get_params(ctx), self._help_all()]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, summary, example and the main options."""
        shown = [option for option in self._options(ctx) if self._is_shown_in_short_help(option)]
        self._write_help(ctx, formatter, self.help or "", {OTHER: shown})

    def options_by_heading(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the options by heading, in order of declaration; options without a heading are last."""
        grouped: dict[str, list[click.Option]] = {}
        for option in sorted(self._options(ctx), key=lambda option: not hasattr(option, HEADING)):
            grouped.setdefault(getattr(option, HEADING, OTHER), []).append(option)
        return grouped

    def _help_all(self) -> click.Option:
        def show(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
            if wanted and not ctx.resilient_parsing:
                formatter = ctx.make_formatter()
                self._write_help(ctx, formatter, self.full_text, self.options_by_heading(ctx))
                click.echo(formatter.getvalue().rstrip("\n"), color=ctx.color)
                ctx.exit()

        return click.Option(
            ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show, help="Show all options."
        )

    def _options(self, ctx: click.Context) -> Iterable[click.Option]:
        return (parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option))

    def _is_shown_in_short_help(self, option: click.Option) -> bool:
        return option.required or option.name in self.main_options or option.name == "help_all"

    def _write_help(
        self, ctx: click.Context, formatter: click.HelpFormatter, text: str, sections: dict[str, list[click.Option]]
    ) -> None:
        self.format_usage(ctx, formatter)
        summary, _, rest = text.partition("\n\n")
        example = "\b\nExample:\n" + "\n".join("  " + line for line in self.example.splitlines())
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\n\n".join(filter(None, (summary, example, rest))))
        for heading, listed in sections.items():
            records = [record for option in listed if (record := option.get_help_record(ctx)) is not None]
            with formatter.section(heading):
                formatter.write_dl(records)


def _kept_flag(flag: str, key: str, text: str) -> click.Option:
    """Return a flag that is kept in the context under a key."""

    def keep(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        ctx.meta[key] = wanted

    names = [flag, f"as_{flag.strip('-').replace('-', '_')}"]
    return click.Option(names, is_flag=True, expose_value=False, callback=keep, help=text)


class VerbGroup(click.Group):
    """Group whose help lists the commands by heading.

    Args:
        sections: commands by heading, in the order of help.
        settings: keyword arguments of `click.Group`.
    """

    def __init__(self, *, sections: Mapping[str, Sequence[click.Command]], **settings: Any) -> None:
        super().__init__(commands=[command for listed in sections.values() for command in listed], **settings)
        self.sections = sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of use."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line for each command, under its heading."""
        widest = max(map(len, self.commands))
        for heading, listed in self.sections.items():
            with formatter.section(heading):
                width = formatter.width - widest - 4
                formatter.write_dl([(f"{c.name:{widest}}", c.get_short_help_str(width)) for c in listed])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

"""`crowdveil campaign serve`: HTTP service of a campaign."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from crowdveil.cli.display import next_row, print_result
from crowdveil.cli.options import CAMPAIGN_FILE, FILE_PATH, option_group
from crowdveil.cli.verb import Verb
from crowdveil.errors import SettingsError

database_option = click.option(
    "--database", metavar="URL", help="sqlite:///FILE or postgresql://...; by default reports.sqlite next to CAMPAIGN."
)

server_options = option_group(
    click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Listening address."),
    click.option("--port", type=click.IntRange(0, 65535), default=8000, help="Listening port."),
    click.option("--tls-certificate", type=FILE_PATH, help="Certificate of the service (PEM)."),
    click.option("--tls-key", type=FILE_PATH, help="Its private key (PEM)."),
    click.option(
        "--behind-proxy", is_flag=True, help="A proxy terminates TLS: serve plain HTTP beyond the loopback address."
    ),
)
"""Options of a listening address, named as the fields of `ServerSettings`."""


def require_service_packages() -> None:
    """Check that the packages of the extra are installed.

    Raises:
        SettingsError: they are not.
    """
    try:
        import sqlalchemy  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise SettingsError(
            "the service needs more packages",
            value=error.name,
            hint="Install them: pip install 'crowdveil[service]'.",
        ) from error


@contextmanager
def database_errors_as_refusals() -> Iterator[None]:
    """Context in which a database that does not answer ends in a refusal; its URL is not shown."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except SQLAlchemyError as error:
        from crowdveil.campaign.service.schema import FAILURES, failure_kind

        reason = failure_kind(error)
        hint = "Check that the server runs, that the user may connect, and that the file is a database of crowdveil."
        if reason in FAILURES:
            hint = "Close other connections, or free disk space, and run the command again."
        raise SettingsError("the database must answer", value=FAILURES.get(reason, reason), hint=hint) from error


def database_url(campaign: Path, given: str | None) -> str:
    """Return the URL of the database: the given one, or that of the file beside the campaign."""
    return given or f"sqlite:///{campaign.absolute().parent / 'reports.sqlite'}"


def database_words(given: str | None) -> tuple[str, ...]:
    """Return the option of a database in a printed command; its address may hold a password, and is not shown."""
    return () if given is None else ("--database", given if given.startswith("sqlite:") else "URL")


@click.command(
    cls=Verb,
    example="crowdveil campaign serve essays/campaign.json",
    main_options=("database", "host", "port", "tls_certificate", "tls_key", "behind_proxy"),
    short_help="Collect the reports of a campaign over HTTP.",
)
@click.argument("campaign", type=CAMPAIGN_FILE)
@database_option
@server_options
@click.option("--client-header", metavar="NAME", help="Header in which the proxy names the client, to limit its rate.")
@click.option(
    "--rate",
    type=click.IntRange(0),
    default=50,
    metavar="N",
    help="Requests per second and client address, in bursts 40 times as many. 0: no limit.",
)
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="Serve /metrics on this port of this computer.")
@click.option("--log-requests", is_flag=True, help="Log route, status and duration class of each request.")
@click.option(
    "--accept-second-report",
    is_flag=True,
    help="Accept new links even if the old link has a report; the epsilons of both reports add up.",
)
def serve(
    campaign: Path,
    database: str | None,
    accept_second_report: bool,
    **server_settings: Any,
) -> None:
    """Collect the reports of a campaign over HTTP.

    CAMPAIGN is the campaign.json that campaign new wrote; its folder holds assignment parts, pictures and hashes of
    links. A report is stored durably before its receipt is sent. Workers open the page /a/ with their links; the
    curator opens /curator/ with the token in curator-token.txt, which the first start writes.

    \f
    The database is SQLite on a local disk, or PostgreSQL. It holds no time, address or name. Plain HTTP is served on
    the loopback address only, unless a proxy terminates TLS (--behind-proxy) or the service has a certificate of its
    own.

    The rate of requests is limited for each client address (--rate); addresses are held in memory only. Behind a proxy
    this needs --client-header; otherwise the proxy must limit the rate.

    From the campaign's day of deletion on (purge_after_days), the service closes the campaign and deletes its data:
    when it starts, and within an hour of that day. It reads new links of campaign invite when it starts. After SIGTERM
    or Ctrl-C it answers the requests in progress, then stops.
    """
    require_service_packages()
    from crowdveil.campaign.service.campaign_registration import CURATOR_FILE, register_campaign_in_database
    from crowdveil.campaign.service.server import ServerSettings, address_of, open_listening_socket, run

    settings = ServerSettings(database=database_url(campaign, database), **server_settings)
    with open_listening_socket(settings) as listening:
        with database_errors_as_refusals():
            prepared, left_out = register_campaign_in_database(
                settings.database, campaign, accept_second_report=accept_second_report
            )
        address = address_of(settings, listening)
        data: dict[str, Any] = {
            "campaign": prepared.name,
            "page": f"{address}/a/",
            "curator_page": f"{address}/curator/",
            "curator_token": str(campaign.parent / CURATOR_FILE),
            "links_left_out": left_out,
            "purge_day": None if prepared.purge_day is None else prepared.purge_day.isoformat(),
        }
        slots = ", ".join(map(str, left_out))
        rows = [
            ("campaign", prepared.name),
            ("workers' page", data["page"]),
            ("curator's page", f"{data['curator_page']}, token in {data['curator_token']}"),
            *([("reports deleted", f"by this service from {data['purge_day']} (UTC) on")] if data["purge_day"] else []),
            *([("links left out", f"slots {slots}: their old links have reports")] if left_out else []),
            next_row("campaign", "close", campaign, *database_words(database)),
        ]
        print_result(data, rows)
        run(settings, listening)

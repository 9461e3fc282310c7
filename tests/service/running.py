"""Servers for tests: a PostgreSQL with databases of its own, and the service as a process."""

import os
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, make_url, text


@dataclass
class SqlServer:
    """Running PostgreSQL server."""

    server: Any

    @contextmanager
    def database(self) -> Iterator[str]:
        """Yield the URL of a new database, which is dropped at the end."""
        name = f"test_{secrets.token_hex(4)}"
        base = make_url(self.server.get_uri()).set(drivername="postgresql+psycopg")
        admin = create_engine(base, isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        yield base.set(drivername="postgresql", database=name).render_as_string(hide_password=False)
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        admin.dispose()


class ServiceProcess:
    """`crowdveil serve` on a free port; its output goes to a file.

    Attributes:
        port: port of the service.
        log: file with everything that the process printed.
    """

    def __init__(self, folder: Path, log: Path, *options: str, database: str = "", port: int = 0) -> None:
        command = [sys.executable, "-m", "crowdveil", "serve", str(folder / "campaign.json"), "--port", str(port)]
        self.log = log
        with open(log, "ab") as stream:
            start = stream.tell()
            self.process = subprocess.Popen(
                [*command, *(["--database", database] if database else []), *options],
                stdout=stream,
                stderr=subprocess.STDOUT,
                env={**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"},
            )
        self.port = self._wait(start)

    def _wait(self, start: int) -> int:
        """Return the port once the service answers."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = re.search(rb"://[^ ]*?:(\d+)/a/", self.log.read_bytes()[start:])
            if found:
                with suppress(OSError), socket.create_connection(("127.0.0.1", int(found[1])), timeout=30) as opened:
                    opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                    if opened.recv(15) == b"HTTP/1.1 200 OK":
                        return int(found[1])
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.kill()
        raise AssertionError(self.log.read_text())

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """End the process with SIGTERM; return its exit code."""
        self.process.terminate()
        return self.process.wait(timeout=60)

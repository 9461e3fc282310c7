"""The service in a thread and Chromium, for tests of the worker's page."""

import atexit
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from sqlalchemy import select

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.service.schema import metadata, reports
from tests.campaign.builders import BuiltCampaign, build_campaign

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
ASGIApp = Callable[..., Any]
WAIT = 60
"""Seconds until a server must have begun."""
_HELD = ExitStack()
atexit.register(_HELD.close)


def chromium_missing() -> str:
    """Return why no browser can be started; empty if one can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return "" if CHROMIUM else "Chromium is not installed"


needs_chromium = pytest.mark.skipif(bool(chromium_missing()), reason=chromium_missing() or "it is there")


@contextmanager
def chromium(*arguments: str) -> Iterator[Any]:
    """Yield a running Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *arguments])
        yield browser
        browser.close()


def free_port() -> int:
    """Return a port of this computer that is free, and stays so until a server of the tests listens there.

    A socket holds it to the end of this process: it does not listen, and leaves the address to those who will.
    """
    sock = _HELD.enter_context(socket.socket())
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", 0))
    port: int = sock.getsockname()[1]
    return port


def leave(page: Any, selector: str) -> None:
    """Click what leads to another page in the same tab, and wait until that page is loaded."""
    with page.expect_navigation():
        page.click(selector)


def address_of(page: Any) -> str:
    """Return the address that a page has now."""
    return str(page.evaluate("location.href"))


@contextmanager
def served(app: ASGIApp, port: int, lifespan: Literal["auto", "on", "off"] = "on") -> Iterator[None]:
    """Run an application on a port of this computer, in a thread."""
    import uvicorn

    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_config=None, log_level="warning", access_log=False, lifespan=lifespan,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        end = time.monotonic() + WAIT
        while not server.started and thread.is_alive() and time.monotonic() < end:
            time.sleep(0.01)
        assert server.started
        yield
    finally:
        server.should_exit = True
        thread.join()


@dataclass
class Forger:
    """Application that replaces replies of another one by path suffix: (status, headers, body)."""

    app: ASGIApp
    replies: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Reply from the list, else pass the request on."""
        reply = next((reply for end, reply in self.replies.items() if scope.get("path", "").endswith(end)), None)
        if scope["type"] != "http" or reply is None:
            return await self.app(scope, receive, send)
        status, headers, body = reply
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": body})
        return None


@dataclass
class Campaigning:
    """A campaign at a running service.

    Attributes:
        built: campaign, parts and tokens.
        store: the service's database.
        database: file of the database.
        forger: replies of the server that a test replaces.
    """

    built: BuiltCampaign
    store: Any
    database: Path
    forger: Forger

    @property
    def url(self) -> str:
        """Address of the service."""
        return str(self.built.campaign.url)

    def link(self, slot: int) -> str:
        """Return the link of a slot."""
        return self.built.link(slot).text

    def bodies(self) -> list[bytes]:
        """Return the bodies of all stored reports."""
        with self.store.engine.connect() as connection:
            return list(connection.execute(select(reports.c.body)).scalars())

    def stored_bytes(self) -> bytes:
        """Return every value of the database but the documents of the campaign, as one run of bytes."""
        with self.store.engine.connect() as connection:
            rows = [
                value
                for table in metadata.sorted_tables
                for row in connection.execute(select(*(c for c in table.c if c.name != "document")))
                for value in row
            ]
        return b"\n".join(value if isinstance(value, bytes) else str(value).encode() for value in rows)


@contextmanager
def campaigning(folder: Path, **settings: Any) -> Iterator[Campaigning]:
    """Run the service with one campaign; settings as in `build_campaign`."""
    from crowdveil.campaign.service.app import create_app
    from crowdveil.campaign.service.campaign_registration import register_campaign
    from crowdveil.campaign.service.store import Store

    port = free_port()
    built = build_campaign(**{"url": f"http://127.0.0.1:{port}", **settings})
    folder.mkdir(parents=True, exist_ok=True)
    database = folder / "reports.sqlite"
    store = Store.open(f"sqlite:///{database}")
    register_campaign(store, CampaignFolder(built.write(folder / "campaign")))
    forger = Forger(create_app(store))
    with served(forger, port):
        yield Campaigning(built, store, database, forger)
    store.close()

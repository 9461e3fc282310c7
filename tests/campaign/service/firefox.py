"""Firefox without a window, driven over its own protocol (Marionette), as a page whose methods are those of tests."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.campaign.service.browser import free_port

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox") or ""
WAIT = 120.0
"""Seconds until Firefox listens, a screen must be there, or a script must have ended."""
needs_firefox = pytest.mark.skipif(not FIREFOX, reason="Firefox is not installed")


class FirefoxError(Exception):
    """A command that Firefox refused: during a navigation, because its document is gone."""


class FirefoxPage:
    """A page of Firefox; every command is a JSON text `[0, number, name, parameters]` after its length and a colon."""

    def __init__(self, connection: socket.socket) -> None:
        self._stream = connection.makefile("rwb")
        self._sent = 0
        self._receive()
        self._call("WebDriver:NewSession", acceptInsecureCerts=True)
        self._call("WebDriver:SetTimeouts", script=int(1000 * WAIT))

    def goto(self, url: str) -> None:
        """Open an address."""
        self._call("WebDriver:Navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        return self._call("WebDriver:ExecuteScript", script=f"return {script};", args=[])["value"]

    def result_of(self, function: str, given: Any) -> Any:
        """Return what an asynchronous function in the page gives for an argument; the text of its error if it fails."""
        script = f"const done = arguments[1]; ({function})(arguments[0]).then(done, (error) => done(String(error)));"
        return self._call("WebDriver:ExecuteAsyncScript", script=script, args=[given])["value"]

    def click(self, selector: str) -> None:
        """Click the first element of a selector."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def fill(self, selector: str, text: str) -> None:
        """Set the text of a field."""
        self.evaluate(f"void (document.querySelector({json.dumps(selector)}).value = {json.dumps(text)})")

    def wait_for(self, selector: str) -> None:
        """Wait until an element of a selector is there."""
        end = time.monotonic() + WAIT
        while not self._has(selector):
            assert time.monotonic() < end, (selector, self.evaluate("document.body.innerText"))
            time.sleep(0.05)

    def _has(self, selector: str) -> bool:
        try:
            return bool(self.evaluate(f"document.querySelector({json.dumps(selector)}) !== null"))
        except FirefoxError:
            return False

    def await_screen(self, screen: str) -> None:
        """Wait until a screen of the worker's page is shown."""
        self.wait_for(f"#{screen}:not([hidden])")

    def _call(self, name: str, **parameters: Any) -> Any:
        self._sent += 1
        data = json.dumps([0, self._sent, name, parameters]).encode()
        self._stream.write(str(len(data)).encode() + b":" + data)
        self._stream.flush()
        _, number, error, result = self._receive()
        assert number == self._sent
        if error is not None:
            raise FirefoxError(error)
        return result

    def _receive(self) -> Any:
        length = b""
        while (digit := self._stream.read(1)) != b":":
            length += digit
        return json.loads(self._stream.read(int(length)))


@contextmanager
def firefox(folder: Path) -> Iterator[FirefoxPage]:
    """Yield a page of a Firefox whose profile lies in a folder."""
    port, profile = free_port(), folder / "profile"
    profile.mkdir(parents=True)
    preferences = {"marionette.port": port, "datareporting.policy.dataSubmissionEnabled": False}
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items())
    (profile / "user.js").write_text("".join(lines))
    command = [FIREFOX, "--headless", "--no-remote", "--marionette", "--profile", str(profile)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with _connected(port) as connection:
            yield FirefoxPage(connection)
    finally:
        process.terminate()
        process.wait(WAIT)


def _connected(port: int) -> socket.socket:
    end = time.monotonic() + WAIT
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=2 * WAIT)
        except OSError:
            assert time.monotonic() < end, "Firefox does not listen"
            time.sleep(0.1)

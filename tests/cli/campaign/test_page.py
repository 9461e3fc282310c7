"""`crowdveil campaign page`: the one-file page and its SHA-256."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from tests.campaign.builders import build_campaign
from tests.cli.conftest import Run


def test_the_page_is_written_with_its_hash(run: Run) -> None:
    """The command prints the SHA-256 of the file; the same campaign gives the same file again."""
    build_campaign(url=None).write(Path("survey"))

    first = run("campaign", "page", "survey", "--out", "device.html").stdout
    second = run("campaign", "page", "survey", "--out", "device.html").stdout

    digest = sha256(Path("device.html").read_bytes()).hexdigest()
    assert digest in first
    assert digest in second


def test_an_edited_campaign_has_no_page(run: Run, refusal: Callable[..., str]) -> None:
    """A title that was changed after the links were made gives another campaign, which no link names."""
    build_campaign(url=None, content={"title": "Before"}).write(Path("survey"))
    run("campaign", "page", "survey", "--out", "device.html")
    document = Path("survey/campaign.json")
    assert b'"Before"' in document.read_bytes()
    document.write_bytes(document.read_bytes().replace(b'"Before"', b'"Behind"'))

    assert "the tokens are of another campaign" in refusal("campaign", "page", "survey", "--out", "other.html")
    assert not Path("other.html").exists()


def test_other_files_are_not_replaced(run: Run, refusal: Callable[..., str]) -> None:
    """A file that this command did not write stays."""
    build_campaign(url=None).write(Path("survey"))
    Path("device.html").write_text("mine", encoding="utf-8")

    assert "device.html" in refusal("campaign", "page", "survey", "--out", "device.html")
    assert "mine" == Path("device.html").read_text("utf-8")
